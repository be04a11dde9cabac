/*
 * What crosses exec in a binary upgrade, as it is read: whole, damaged in every place, and of
 * another version.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "master/control.h"
#include "master/legacy.h"
#include "support/suite.h"
#include "support/text.h"

/* One of everything, in the order of the lists. */
struct sample {
    struct legacy legacy;
    struct legacy_generation generations[2];
    struct legacy_source sources[1];
    struct legacy_socket sockets[2];
    struct legacy_child children[3];
    struct legacy_keeper keepers[2];
    struct legacy_total totals[2];
    struct legacy_client clients[1];
    char text[8];
};

#define TEXT ((uint32_t)offsetof(struct sample, text))
#define LIST_OF(name)                                                               \
    {                                                                               \
        sizeof(((struct sample *)0)->name) / sizeof(((struct sample *)0)->name[0]), \
            (uint32_t)offsetof(struct sample, name)                                 \
    }

static const struct sample whole = {
    .legacy = {
        .magic = LEGACY_MAGIC,
        .version = LEGACY_VERSION,
        .size = sizeof(struct sample),
        .old_binary_fd = -1,
        .new_binary_fd = -1,
        .scoreboard_fd = -1,
        .watchdog_fd = -1,
        .log_fd = -1,
        .path = TEXT,
        .program = TEXT,
        .generation = 7,
        .lists = {
            [LEGACY_GENERATIONS] = LIST_OF(generations),
            [LEGACY_SOURCES] = LIST_OF(sources),
            [LEGACY_SOCKETS] = LIST_OF(sockets),
            [LEGACY_CHILDREN] = LIST_OF(children),
            [LEGACY_KEEPERS] = LIST_OF(keepers),
            [LEGACY_TOTALS] = LIST_OF(totals),
            [LEGACY_CLIENTS] = LIST_OF(clients),
        },
    },
    .generations = {
        { .number = 7, .is_current = 1, .workers = 2, .tally_fd = -1, .access_fd = -1,
          .nsources = 1 },
        { .number = 5, .workers = 1, .tally_fd = -1, .access_fd = -1 },
    },
    .sources = { { .path = TEXT, .bytes = TEXT, .length = 8 } },
    .sockets = { { .fd = -1, .entry = TEXT }, { .fd = -1, .entry = TEXT, .slot = 1 } },
    .children = {
        { .pid = 11, .channel = -1, .worker = 1, .generation = 7,
          .flags = LEGACY_CHILD_PLACED | LEGACY_CHILD_READY | LEGACY_CHILD_SERVING },
        { .channel = -1, .worker = 2, .generation = 7, .flags = LEGACY_CHILD_PLACED },
        { .pid = 12, .channel = -1, .worker = 1, .slot = 1, .generation = 5,
          .flags = LEGACY_CHILD_DRAINING },
    },
    .keepers = { { .worker = 1 }, { .worker = 1 } },
    .totals = { { .path = TEXT }, { .path = 0 } },
    .clients = { { .fd = -1, .wait = CONTROL_UPGRADE, .bytes = TEXT, .length = 3 } },
    .text = "a text",
};

static struct legacy *read_bytes(const void *bytes, size_t length, struct legacy_error *error)
{
    int fd = memfd_create("legacy", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
    struct legacy *legacy = legacy_read(fd, error);
    close(fd);
    return legacy;
}

/* Goes wherever a reader would go. */
static size_t visit(const struct legacy *legacy)
{
    size_t sum = strlen(legacy_text(legacy, legacy->path));
    const struct legacy_source *sources = legacy_list(legacy, LEGACY_SOURCES);
    const struct legacy_client *clients = legacy_list(legacy, LEGACY_CLIENTS);

    for (enum legacy_list_kind kind = 0; kind < LEGACY_LISTS; kind++) {
        const char *bytes = legacy_list(legacy, kind);
        for (size_t i = 0; i < legacy->lists[kind].count * legacy_element_size(kind); i++)
            sum += (unsigned char)bytes[i];
    }
    for (uint32_t i = 0; i < legacy->lists[LEGACY_SOURCES].count; i++)
        for (uint32_t k = 0; k < sources[i].length; k++)
            sum += (unsigned char)((const char *)legacy)[sources[i].bytes + k];
    for (uint32_t i = 0; i < legacy->lists[LEGACY_CLIENTS].count; i++)
        for (uint32_t k = 0; k < clients[i].length; k++)
            sum += (unsigned char)((const char *)legacy)[clients[i].bytes + k];
    return sum;
}

START_TEST(whole_one)
{
    struct legacy_error error;
    struct legacy *legacy = read_bytes(&whole, sizeof whole, &error);

    ck_assert_msg(legacy != NULL, "%s", error.text);
    ck_assert_int_eq(memcmp(legacy, &whole, sizeof whole), 0);
    ck_assert_str_eq(legacy_text(legacy, legacy->program), "a text");
    ck_assert_ptr_null(legacy_text(legacy, legacy->reason));
    ck_assert_int_eq(legacy_set_cloexec(legacy, true), 0);
    visit(legacy);
    free(legacy);
}
END_TEST

START_TEST(cut_short)
{
    struct legacy_error error;

    for (size_t length = 0; length < sizeof whole; length++)
        ck_assert_ptr_null(read_bytes(&whole, length, &error));
    ck_assert_ptr_null(legacy_read(-1, &error));
    ck_assert_str_eq(error.text, "descriptor -1 holds none");
}
END_TEST

START_TEST(other_versions)
{
    struct legacy_error error;
    struct sample sample = whole;

    sample.legacy.version = LEGACY_VERSION + 1;
    ck_assert_ptr_null(read_bytes(&sample, sizeof sample, &error));
    ck_assert_str_eq(error.text, text_format("its version is %d, and only %d is understood",
                                             LEGACY_VERSION + 1, LEGACY_VERSION));
    sample.legacy.magic++;
    ck_assert_ptr_null(read_bytes(&sample, sizeof sample, &error));
    ck_assert_str_eq(error.text, "it is none");
}
END_TEST

/* Whatever is still taken leads nowhere outside. */
START_TEST(damaged_anywhere)
{
    static const uint32_t values[] = { 0, 1, 2, 7, 4096, 0x7fffffff, 0x80000000, 0xffffffff };
    struct legacy_error error;
    size_t refused = 0;

    for (size_t at = 0; at < sizeof whole; at += sizeof(uint32_t))
        for (int i = 0; i < SUITE_ROWS(values); i++) {
            struct sample sample = whole;
            memcpy((char *)&sample + at, &values[i], sizeof values[i]);
            struct legacy *legacy = read_bytes(&sample, sizeof sample, &error);
            if (legacy != NULL)
                visit(legacy);
            refused += legacy == NULL;
            free(legacy);
        }
    ck_assert_uint_gt(refused, 200);
}
END_TEST

#define ROW(field, damage)                             \
    {                                                  \
#field, offsetof(struct sample, field), damage \
    }

static const struct {
    const char *name;
    size_t at;
    uint32_t value;
} damage_rows[] = {
    ROW(legacy.size, sizeof whole + 8),
    ROW(legacy.path, 0),
    ROW(legacy.path, 8),
    ROW(legacy.reason, sizeof whole),
    ROW(legacy.lists[LEGACY_CHILDREN].count, 4000),
    ROW(legacy.lists[LEGACY_CHILDREN].offset, 0),
    ROW(legacy.lists[LEGACY_CLIENTS].offset, sizeof whole - 4),
    ROW(legacy.lists[LEGACY_GENERATIONS].count, 0),
    ROW(generations[0].is_current, 0),
    ROW(generations[1].is_current, 1),
    ROW(generations[1].number, 7),
    ROW(generations[0].number, 8),
    ROW(generations[0].workers, 0),
    ROW(generations[0].workers, 100000),
    ROW(generations[0].nsources, 2),
    ROW(generations[0].source, 2),
    ROW(sources[0].path, sizeof whole),
    ROW(sources[0].length, 9),
    ROW(sockets[0].slot, 1),
    ROW(sockets[1].slot, 2),
    ROW(sockets[1].part, 1),
    ROW(sockets[0].part, 2),
    ROW(sockets[0].role, LEGACY_ROLES),
    ROW(children[0].generation, 6),
    ROW(children[0].worker, 3),
    ROW(children[0].slot, 4096),
    ROW(children[0].pid, 0xffffffff),
    ROW(children[1].flags, 0),
    ROW(children[2].flags, LEGACY_CHILD_PLACED),
    ROW(keepers[1].worker, 3),
    ROW(totals[0].path, 3),
    ROW(clients[0].wait, CONTROL_WAITS),
    ROW(clients[0].length, 9),
    ROW(clients[0].answer, 2),
};

START_TEST(damaged_there)
{
    struct legacy_error error;
    struct sample sample = whole;

    memcpy((char *)&sample + damage_rows[_i].at, &damage_rows[_i].value, sizeof(uint32_t));
    ck_assert_msg(read_bytes(&sample, sizeof sample, &error) == NULL, "%s", damage_rows[_i].name);
    ck_assert_msg(strcmp(error.text, "it is damaged") == 0 ||
                      strcmp(error.text, "its size is wrong") == 0,
                  "%s: %s", damage_rows[_i].name, error.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("legacy");
    TCase *tests = suite_case(suite, "legacy");

    tcase_add_test(tests, whole_one);
    tcase_add_test(tests, cut_short);
    tcase_add_test(tests, other_versions);
    tcase_add_test(tests, damaged_anywhere);
    tcase_add_loop_test(tests, damaged_there, 0, SUITE_ROWS(damage_rows));
    return suite_run(suite);
}
