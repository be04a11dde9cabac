#include "master/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/address.h"

#define LISTENING 0x0a /* TCP_LISTEN in the state column */

/* As the kernel prints an address: the four bytes of each word as one number of this machine. */
static bool read_words(const char *text, uint32_t *words, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (sscanf(text + (size_t)i * 8, "%8x", &words[i]) != 1)
            return false;
    return true;
}

static bool is_zero(const uint32_t *words, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (words[i] != 0)
            return false;
    return true;
}

/* Does a socket bound to `theirs`, of so many words, stand in the way of `ours`? A "::" of somebody
 * else may take IPv4 too. */
static bool is_in_the_way(const struct address *ours, const uint32_t *theirs, unsigned count)
{
    bool is_v4 = ours->any.sa_family == AF_INET;
    if (is_v4 && count == 4)
        return is_zero(theirs, 4);
    if (is_v4 != (count == 1))
        return false;
    uint32_t words[4];
    memcpy(words, is_v4 ? (const void *)&ours->v4.sin_addr : &ours->v6.sin6_addr, count * 4U);
    return is_zero(words, count) || is_zero(theirs, count) ||
           memcmp(words, theirs, count * 4U) == 0;
}

/* The inode of the listening socket in a table such as /proc/self/net/tcp; 0: none. */
static unsigned long find_inode(const char *table, const struct address *ours, unsigned count)
{
    char line[512], text[40];
    unsigned port, state;
    unsigned long inode = 0, found = 0;
    FILE *file = fopen(table, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        uint32_t theirs[4];
        if (sscanf(line, " %*d: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %lu", text,
                   &port, &state, &inode) == 4 &&
            state == LISTENING && port == address_port(ours) && strlen(text) == count * 8U &&
            read_words(text, theirs, count) && is_in_the_way(ours, theirs, count))
            found = inode;
    }
    if (file)
        fclose(file);
    return found;
}

/* Has the process this socket open? Not if we may not look. */
static bool has_socket(pid_t pid, unsigned long inode)
{
    char path[64], wanted[48], link[48];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    DIR *directory = opendir(path);
    bool is_found = false;
    for (struct dirent *entry; directory && !is_found && (entry = readdir(directory));) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);
        link[length > 0 ? length : 0] = '\0';
        is_found = strcmp(link, wanted) == 0;
    }
    if (directory)
        closedir(directory);
    return is_found;
}

static pid_t parent_of(pid_t pid)
{
    char path[64], line[512] = "";
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    const char *rest = strrchr(line, ')');
    return rest && sscanf(rest, ") %*c %d", &parent) == 1 ? parent : 0;
}

static pid_t find_process(unsigned long inode)
{
    DIR *directory = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *entry; directory && found == 0 && (entry = readdir(directory));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && has_socket(pid, inode))
            found = pid;
    }
    if (directory)
        closedir(directory);
    for (pid_t parent = found; parent > 0 && has_socket(parent, inode); parent = parent_of(parent))
        found = parent;
    return found;
}

pid_t holder_find(const struct address *address)
{
    int reason = errno;
    unsigned long inode = 0;
    if (address->any.sa_family == AF_INET)
        inode = find_inode("/proc/self/net/tcp", address, 1);
    if (inode == 0 && address->any.sa_family != AF_UNIX)
        inode = find_inode("/proc/self/net/tcp6", address, 4);
    pid_t pid = inode != 0 ? find_process(inode) : 0;
    errno = reason;
    return pid;
}

const char *holder_text(char *text, pid_t pid)
{
    int reason = errno;
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    if (file && !fgets(name, sizeof(name), file))
        name[0] = '\0';
    if (file)
        fclose(file);
    name[strcspn(name, "\n")] = '\0';
    for (char *at = name; *at; at++)
        if (!isprint((unsigned char)*at))
            *at = '?';
    if (name[0])
        snprintf(text, HOLDER_TEXT_SIZE, "process %d (%s)", (int)pid, name);
    else
        snprintf(text, HOLDER_TEXT_SIZE, "another process");
    errno = reason;
    return text;
}
