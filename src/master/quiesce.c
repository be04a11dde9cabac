#include "master/quiesce.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include "master/listener.h"

#define FLAGS_OFFSET 13 /* in the TCP header, with which the filter's data begins */
#define FLAG_SYN 0x02

void quiesce_set(const struct listener_set *set)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_OFFSET),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FLAG_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),          /* dropped */
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff), /* all of it */
    };
    const struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };
    for (size_t i = 0; i < set->count; i++) {
        const struct listener *listener = set->items[i];
        for (unsigned k = 0; k < listener->nfds; k++)
            if (!listener->is_shared && listener->references == 1)
                setsockopt(listener->fds[k], SOL_SOCKET, SO_ATTACH_FILTER, &program,
                           sizeof(program));
    }
}
