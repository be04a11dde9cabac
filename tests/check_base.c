/*
 * The lowest layer: slices, buffers, UTF-8, channels, the scoreboard, spans of time, sinks.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/channel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "base/sink.h"
#include "base/tally.h"
#include "base/utf8.h"
#include "support/suite.h"

START_TEST(members_of_a_list)
{
    static const struct {
        const char *list, *members[4];
    } cases[] = {
        { "", { NULL } },
        { "close", { "close" } },
        { " close\t,  keep-alive ,", { "close", "keep-alive" } },
        { ",, ,a,\t,b", { "a", "b" } },
    };
    struct slice rest = slice_of(cases[_i].list), member;
    size_t count = 0;
    while (slice_next_member(&rest, &member)) {
        ck_assert_ptr_nonnull(cases[_i].members[count]);
        ck_assert(slice_equal(member, slice_of(cases[_i].members[count])));
        count++;
    }
    ck_assert_ptr_null(cases[_i].members[count]);
}
END_TEST

START_TEST(case_of_slices)
{
    ck_assert(slice_equal_nocase(SLICE("Keep-Alive"), SLICE("kEEP-aLIVE")));
    ck_assert(!slice_equal_nocase(SLICE("@"), SLICE("`"))); /* not letters, 0x20 apart */
    ck_assert(!slice_equal_nocase(SLICE("ab"), SLICE("abc")));
    ck_assert(!slice_equal(SLICE("a"), SLICE("A")));
}
END_TEST

START_TEST(buffers_grow_and_shrink)
{
    struct buf buf = { 0 };
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(buf_printf(&buf, "%03d,", i), 0);
    ck_assert_uint_eq(buf.length, 4000);
    buf_consume(&buf, 3996);
    ck_assert(slice_equal(buf_slice(&buf), SLICE("999,")));
    ck_assert_str_eq(buf_string(&buf), "999,");
    buf_consume(&buf, 100);
    ck_assert_uint_eq(buf.length, 0);
    ck_assert_int_eq(buf_reserve(&buf, SIZE_MAX), -1);
    ck_assert_int_eq(errno, ENOMEM);
    buf_fini(&buf);
}
END_TEST

START_TEST(escaping)
{
    static const struct {
        struct slice text;
        const char *json, *escaped;
    } cases[] = {
        { { "plain", 5 }, "plain", "plain" },
        { { "a\"b\\c", 5 }, "a\\\"b\\\\c", "a\\x22b\\x5Cc" },
        { { "\r\n\x1b\0", 4 }, "\\u000d\\u000a\\u001b\\u0000", "\\x0D\\x0A\\x1B\\x00" },
        { { "\xc3\xa9\xff", 3 }, "\xc3\xa9\xef\xbf\xbd", "\\xC3\\xA9\\xFF" },
        { { "x\xc2\x9b"
            "31m",
            6 },
          "x\\u009b31m",
          "x\\xC2\\x9B31m" },
        { { "\xe2\x80\xa8\xef\xbb\xbf", 6 }, "\\u2028\\ufeff", "\\xE2\\x80\\xA8\\xEF\\xBB\\xBF" },
    };
    struct buf buf = { 0 };
    buf_add_json(&buf, cases[_i].text);
    ck_assert_str_eq(buf_string(&buf), cases[_i].json);
    buf.length = 0;
    buf_add_escaped(&buf, cases[_i].text);
    ck_assert_str_eq(buf_string(&buf), cases[_i].escaped);
    buf_fini(&buf);
}
END_TEST

START_TEST(utf8)
{
    static const struct {
        const char *text;
        size_t width;
    } cases[] = {
        { "a", 1 },
        { "\xc2\x80", 2 },
        { "\xe2\x82\xac", 3 },
        { "\xf0\x9f\x98\x80", 4 },
        { "\xf4\x8f\xbf\xbf", 4 },
        { "", 0 },
        { "\x80", 0 },
        { "\xc0\xaf", 0 },
        { "\xe0\x80\xaf", 0 },
        { "\xed\xa0\x80", 0 },
        { "\xf4\x90\x80\x80", 0 },
        { "\xe2\x82", 0 },
        { "\xff", 0 },
        { "\xc3(", 0 },
    };
    ck_assert_uint_eq(utf8_width(cases[_i].text, strlen(cases[_i].text)), cases[_i].width);
}
END_TEST

/* What a line must not hold as it is; and the neighbours, which it may. */
START_TEST(unfit_characters)
{
    static const struct {
        const char *text;
        uint32_t code;
        bool is_unfit;
    } cases[] = {
        { "\x1f", 0x1f, true },
        { " ", 0x20, false },
        { "~", 0x7e, false },
        { "\x7f", 0x7f, true },
        { "\xc2\x80", 0x80, true },
        { "\xc2\x85", 0x85, true },
        { "\xc2\x9b", 0x9b, true },
        { "\xc2\x9f", 0x9f, true },
        { "\xc2\xa0", 0xa0, false },
        { "\xd8\x9b", 0x61b, false },
        { "\xd8\x9c", 0x61c, true },
        { "\xe2\x80\x8d", 0x200d, false },
        { "\xe2\x80\x8e", 0x200e, true },
        { "\xe2\x80\x8f", 0x200f, true },
        { "\xe2\x80\xa7", 0x2027, false },
        { "\xe2\x80\xa8", 0x2028, true },
        { "\xe2\x80\xa9", 0x2029, true },
        { "\xe2\x80\xaa", 0x202a, true },
        { "\xe2\x80\xae", 0x202e, true },
        { "\xe2\x80\xaf", 0x202f, false },
        { "\xe2\x81\xa5", 0x2065, false },
        { "\xe2\x81\xa6", 0x2066, true },
        { "\xe2\x81\xa9", 0x2069, true },
        { "\xef\xbb\xbf", 0xfeff, true },
        { "\xf0\x9f\x98\x80", 0x1f600, false },
        { "\xf4\x8f\xbf\xbf", 0x10ffff, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t code = utf8_code(cases[i].text, strlen(cases[i].text));
        ck_assert_uint_eq(code, cases[i].code);
        ck_assert_msg(utf8_is_unfit(code) == cases[i].is_unfit, "U+%04X", code);
    }
}
END_TEST

START_TEST(spans)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        { 0, "0 ms" },
        { 400000, "0.4 ms" },
        { 250 * CLOCK_MILLISECOND, "250 ms" },
        { 9400 * CLOCK_MILLISECOND, "9.4 s" },
        { 192 * CLOCK_SECOND, "3m12s" },
        { 7500 * CLOCK_SECOND, "2h05m" },
        { 4 * 86400 * CLOCK_SECOND + 7 * 3600 * CLOCK_SECOND, "4d07h" },
    };
    char text[CLOCK_SPAN_SIZE];
    clock_span(text, sizeof(text), cases[_i].ns);
    ck_assert_str_eq(text, cases[_i].text);
}
END_TEST

START_TEST(start_is_in_the_past)
{
    int64_t now = clock_monotonic();
    ck_assert_int_le(clock_process_start(), now);
    ck_assert_int_gt(clock_process_start(), 0);
}
END_TEST

START_TEST(channel_passes_text_and_descriptors)
{
    int ends[2], pair[2];
    ck_assert_int_eq(channel_open(ends), 0);
    ck_assert_int_eq(pipe(pair), 0);
    struct channel_message out = { .kind = CHANNEL_LOGS, .argument = 3, .value = -5, .nfds = 2 };
    out.fds[0] = pair[0];
    out.fds[1] = pair[1];
    strcpy(out.text, "why");
    ck_assert_int_eq(channel_send(ends[0], &out), 0);
    struct channel_message in;
    ck_assert_int_eq(channel_receive(ends[1], &in), CHANNEL_MESSAGE);
    ck_assert_int_eq(in.kind, CHANNEL_LOGS);
    ck_assert_uint_eq(in.argument, 3);
    ck_assert_int_eq(in.value, -5);
    ck_assert_str_eq(in.text, "why");
    ck_assert_uint_eq(in.nfds, 2);
    ck_assert(fcntl(in.fds[0], F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(write(in.fds[1], "x", 1), 1);
    char byte;
    ck_assert_int_eq(read(pair[0], &byte, 1), 1);
    ck_assert_int_eq(channel_receive(ends[1], &in), CHANNEL_EMPTY);
    close(ends[0]);
    ck_assert_int_eq(channel_receive(ends[1], &in), CHANNEL_CLOSED);
}
END_TEST

START_TEST(channel_refuses_a_runt)
{
    int ends[2];
    struct channel_message in;
    ck_assert_int_eq(channel_open(ends), 0);
    ck_assert_int_eq(send(ends[0], "abc", 3, 0), 3);
    ck_assert_int_eq(channel_receive(ends[1], &in), CHANNEL_ERROR);
    ck_assert_int_eq(errno, EBADMSG);
}
END_TEST

START_TEST(full_channel_says_so)
{
    int ends[2], sent = 0;
    struct channel_message out = { .kind = CHANNEL_GO };
    ck_assert_int_eq(channel_open(ends), 0);
    while (channel_send(ends[0], &out) == 0)
        sent++;
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_gt(sent, 5);
}
END_TEST

START_TEST(counters_never_go_backwards)
{
    int fd;
    struct scoreboard *board = scoreboard_new(&fd);
    ck_assert_ptr_nonnull(board);
    struct scoreboard_sums sums;
    uint64_t total = 0;
    for (int life = 0; life < 3 * SCOREBOARD_SLOTS; life += 1000) {
        struct scoreboard_slot *slot = scoreboard_take(board, SCOREBOARD_WORKER);
        ck_assert_ptr_nonnull(slot);
        ck_assert_uint_eq(atomic_load(&slot->counters.requests), 0);
        scoreboard_add(&slot->counters.requests, 7);
        total += 7;
        scoreboard_sum(board, &sums);
        ck_assert_uint_eq(sums.requests, total);
        scoreboard_fold(board, slot);
        scoreboard_sum(board, &sums);
        ck_assert_uint_eq(sums.requests, total);
    }
    scoreboard_free(board);
}
END_TEST

START_TEST(a_full_scoreboard_says_so)
{
    int fd;
    struct scoreboard *board = scoreboard_new(&fd);
    for (int i = 0; i < SCOREBOARD_SLOTS; i++)
        ck_assert_ptr_nonnull(scoreboard_take(board, SCOREBOARD_WORKER));
    ck_assert_ptr_null(scoreboard_take(board, SCOREBOARD_WORKER));
    ck_assert_int_eq(errno, ENOSPC);
    scoreboard_free(board);
}
END_TEST

/* What a crashed child left behind, however mad. */
START_TEST(hostile_requests_are_readable)
{
    static const struct {
        uint32_t length;
        const char *head, *text;
    } cases[] = {
        { 0, "", "" },
        { 28, "GET /crash HTTP/1.1\r\nHost: x", "GET /crash from 127.0.0.1:80" },
        { 5, "GET /", "GET / from 127.0.0.1:80" },
        { 9, "\x1b[2J\"\r\nab", "\\x1B[2J\\x22 from 127.0.0.1:80" },
        { 4, "\n\n\n\n", " from 127.0.0.1:80" },
    };
    struct scoreboard_request request = {
        .peer = { .family = AF_INET, .port = 80, .address = { 127, 0, 0, 1 } },
    };
    char text[1024];
    memcpy(request.head, cases[_i].head, cases[_i].length);
    atomic_store(&request.length, cases[_i].length);
    scoreboard_request_text(text, sizeof(text), &request);
    ck_assert_str_eq(text, cases[_i].text);
    atomic_store(&request.length, UINT32_MAX);
    memset(request.head, 0xff, sizeof(request.head));
    scoreboard_request_text(text, sizeof(text), &request);
    ck_assert_uint_lt(strlen(text), sizeof(text));
    ck_assert_str_eq(scoreboard_state_name(UINT32_MAX), "unknown");
}
END_TEST

START_TEST(latencies_have_buckets)
{
    static const struct {
        int64_t ns;
        unsigned bucket;
    } cases[] = {
        { 0, 0 }, { 100000, 0 }, { 100001, 1 }, { CLOCK_SECOND, 12 }, { 3600 * CLOCK_SECOND, 16 },
    };
    int fd = -1;
    struct tally *tally = tally_new(3, &fd);
    ck_assert_ptr_nonnull(tally);
    tally_latency(tally, cases[_i].ns, 5);
    for (unsigned i = 0; i < TALLY_BUCKETS; i++)
        ck_assert_uint_eq(atomic_load(&tally->latency[i]), i == cases[_i].bucket ? 5 : 0);
    ck_assert_uint_eq(atomic_load(&tally->latency_sum), 5 * (uint64_t)cases[_i].ns);
    /* The last row is that of no route; a status out of range lands in class 0. */
    tally_response(tally, 3, 404);
    tally_response(tally, 3, 999);
    ck_assert_uint_eq(atomic_load(&tally->routes[3].responses[4]), 1);
    ck_assert_uint_eq(atomic_load(&tally->routes[3].responses[0]), 1);
    tally_free(tally, 3);
    close(fd);
}
END_TEST

START_TEST(sinks_never_block)
{
    int pair[2];
    struct sink sink;
    char line[4096];
    memset(line, 'x', sizeof(line));
    if (_i == 0)
        ck_assert_int_eq(pipe(pair), 0);
    else
        ck_assert_int_eq(socketpair(AF_UNIX, _i == 1 ? SOCK_STREAM : SOCK_DGRAM, 0, pair), 0);
    int before = fcntl(pair[1], F_GETFL);
    ck_assert_int_eq(sink_open_inherited(&sink, pair[1]), 0);
    int written = 0;
    while (sink_write(&sink, line, sizeof(line)) == 0)
        written++;
    ck_assert_int_gt(written, 1);
    ck_assert_uint_eq(sink.dropped, 1);
    /* Others share the description: it must still block for them. */
    ck_assert_int_eq(fcntl(pair[1], F_GETFL), before);
    sink_close(&sink);
}
END_TEST

/* A pipe that cannot be opened anew, as for another user: the second way must not block either. */
START_TEST(shared_pipe_never_blocks)
{
    int pair[2];
    char line[4096] = { 0 };
    ck_assert_int_eq(pipe(pair), 0);
    struct sink sink = { .fd = pair[1], .kind = SINK_PIPE, .is_private = false };
    while (sink_write(&sink, line, sizeof(line)) == 0)
        ;
    ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

/* A terminal of another user, which cannot be opened anew, and that nobody reads. */
START_TEST(shared_terminal_never_blocks)
{
    char line[300];
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal == -1 || grantpt(terminal) == -1 || unlockpt(terminal) == -1) {
        suite_skip("there are no pseudo-terminals here");
        return;
    }
    int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    ck_assert_int_ne(fd, -1);
    struct sink sink = { .fd = fd, .kind = SINK_TERMINAL };
    int written = 0;
    while (written < 10000 && sink_write(&sink, line, sizeof(line)) == 0)
        written++;
    ck_assert_int_gt(written, 1);
    ck_assert_int_lt(written, 10000);
    /* It stalled: left alone for a while, not tried again with each line. */
    ck_assert_int_ne(sink.pause, 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(sink_write(&sink, line, sizeof(line)), -1);
    ck_assert_uint_eq(sink.dropped, 1001);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}
END_TEST

/* All that is in a file, and it is removed. */
static const char *take_file(const char *path)
{
    static char text[1024];
    int fd = open(path, O_RDONLY);
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    unlink(path);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

/* Writes while files may not grow beyond `most`. No assertions here: it holds for those of Check
 * too. Returns errno, or 0. */
static int write_limited(struct sink *sink, const char *lines, size_t most)
{
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = most;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    int result = sink_write(sink, lines, strlen(lines));
    int reason = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    return result == 0 ? 0 : reason;
}

/* Two processes write to one file, and the room ends within a batch of the first: the second never
 * continues the fragment, no line is empty, what is lost is counted, and it is known why. */
START_TEST(room_that_ends)
{
    static const struct {
        size_t room;
        uint64_t lost;
        const char *left;
    } cases[] = {
        { 0, 3, "" },
        { 1, 3, "\n" }, /* nothing can be left of it */
        { 3, 3, "aa\n" },
        { 4, 3, "aaa\n" },
        { 5, 2, "aaaa\n" },
        { 8, 2, "aaaa\nbb\n" },
        { 14, 1, "aaaa\nbbbb\nccc\n" },
        { 15, 0, "aaaa\nbbbb\ncccc\n" },
    };
    char directory[] = "/tmp/hayate-room-XXXXXX", path[64], all[128];
    struct sink mine, other;
    size_t room = cases[_i / 3].room;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
    if (_i % 3 == 2) { /* as from "hayate >log" */
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        ck_assert_int_eq(sink_open_inherited(&mine, fd), 0);
        close(fd);
    } else {
        ck_assert_int_eq(sink_open_path(&mine, path, 0600), 0);
    }
    if (_i % 3 == 1) /* a generation of workers later */
        ck_assert_int_eq(sink_open_path(&other, path, 0600), 0);
    else
        ck_assert_int_eq(sink_adopt(&other, fcntl(mine.fd, F_DUPFD_CLOEXEC, 3)), 0);
    ck_assert_int_eq(sink_write(&other, "first\n", 6), 0);
    int reason = write_limited(&mine, "aaaa\nbbbb\ncccc\n", 6 + room);
    ck_assert_int_eq(reason, cases[_i / 3].lost ? EFBIG : 0);
    ck_assert_uint_eq(mine.dropped, cases[_i / 3].lost);
    ck_assert_int_eq(sink_write(&other, "other\n", 6), 0);
    ck_assert_int_eq(sink_write(&mine, "mine\n", 5), 0);
    sink_close(&mine);
    sink_close(&other);
    snprintf(all, sizeof(all), "first\n%sother\nmine\n", cases[_i / 3].left);
    ck_assert_str_eq(take_file(path), all);
    rmdir(directory);
}
END_TEST

/* A fragment that could not be mended in place: its owner ends it, but not when another has written
 * since, and also when the file was opened anew; another file has none. */
START_TEST(fragments_that_stay)
{
    static const struct {
        bool others_write, is_reopened, is_rotated;
        const char *all;
    } cases[] = {
        { false, false, false, "frag\nmine\n" }, { true, false, false, "fragother\nmine\n" },
        { false, true, false, "frag\nmine\n" },  { true, true, false, "fragother\nmine\n" },
        { false, true, true, "mine\n" },
    };
    char directory[] = "/tmp/hayate-torn-XXXXXX", path[64];
    struct sink mine, other, next;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
    ck_assert_int_eq(sink_open_path(&mine, path, 0600), 0);
    ck_assert_int_eq(sink_open_path(&other, path, 0600), 0);
    ck_assert_int_eq(sink_write(&mine, "frag", 4), 0);
    mine.is_torn = true;
    mine.torn_size = 4;
    mine.dropped = 1;
    if (cases[_i].is_rotated)
        unlink(path);
    if (cases[_i].is_reopened) {
        ck_assert_int_eq(sink_open_path(&next, path, 0600), 0);
        sink_replace(&mine, next);
    }
    if (cases[_i].others_write)
        ck_assert_int_eq(sink_write(&other, "other\n", 6), 0);
    ck_assert_int_eq(sink_write(&mine, "mine\n", 5), 0);
    ck_assert_uint_eq(mine.dropped, 1);
    sink_close(&mine);
    sink_close(&other);
    ck_assert_str_eq(take_file(path), cases[_i].all);
    rmdir(directory);
}
END_TEST

START_TEST(file_modes_ignore_the_umask)
{
    char directory[] = "/tmp/hayate-base-XXXXXX", path[64];
    struct sink sink;
    struct stat status;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
    umask(_i ? 0 : 0777);
    ck_assert_int_eq(sink_open_path(&sink, path, 0640), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0640);
    ck_assert_int_eq(sink_write(&sink, "a\n", 2), 0);
    sink_close(&sink);
    unlink(path);
    /* A FIFO without a reader neither fails nor blocks. */
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    chmod(path, 0600);
    ck_assert_int_eq(sink_open_path(&sink, path, 0640), 0);
    ck_assert_int_eq(sink.kind, SINK_PIPE);
    ck_assert_int_eq(sink_write(&sink, "a\n", 2), 0);
    sink_close(&sink);
    unlink(path);
    rmdir(directory);
}
END_TEST

/* One call, one line of at most 4,096 bytes, whatever is in it. */
START_TEST(log_lines_are_lines)
{
    static const char *const texts[] = { "plain", "a\nb\r\x1b[31m\x07", "\xff\xfe\"\\",
                                         ("\xc2\x9b"
                                          "31m\xe2\x80\xa8\xe2\x80\xae\xef\xbb\xbf") };
    char directory[] = "/tmp/hayate-log-XXXXXX", path[64], line[8192];
    struct sink sink;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
    ck_assert_int_eq(sink_open_path(&sink, path, 0600), 0);
    log_set_sink(sink, false);
    log_set_format(_i % 2 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    char *longest = malloc(20000);
    memset(longest, '"', 19999);
    longest[19999] = '\0';
    const char *text = _i / 2 < 4 ? texts[_i / 2] : longest;
    log_info("%s", text);
    log_debug("below the level");
    int fd = open(path, O_RDONLY);
    ssize_t length = read(fd, line, sizeof(line));
    ck_assert_int_gt(length, 40);
    ck_assert_int_le(length, LOG_LINE_MAX);
    for (ssize_t i = 0; i < length - 1; i++)
        ck_assert_msg((unsigned char)line[i] >= 0x20 && (unsigned char)line[i] < 0x7f,
                      "byte %zd is %d", i, line[i]);
    ck_assert_int_eq(line[length - 1], '\n');
    free(longest);
    unlink(path);
    rmdir(directory);
}
END_TEST

START_TEST(closed_standard_descriptors_are_filled)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = 0; fd <= 2; fd++)
            if (_i & 1 << fd)
                close(fd);
        int bad = fd_ensure_standard() == -1;
        for (int fd = 0; fd <= 2; fd++)
            bad |= fcntl(fd, F_GETFD) == -1;
        _exit(bad || open("/dev/null", O_RDONLY) < 3);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *tests = suite_case(suite, "base");
    tcase_add_loop_test(tests, members_of_a_list, 0, 4);
    tcase_add_test(tests, case_of_slices);
    tcase_add_test(tests, buffers_grow_and_shrink);
    tcase_add_loop_test(tests, escaping, 0, 6);
    tcase_add_loop_test(tests, utf8, 0, 14);
    tcase_add_test(tests, unfit_characters);
    tcase_add_loop_test(tests, spans, 0, 7);
    tcase_add_test(tests, start_is_in_the_past);
    tcase_add_test(tests, channel_passes_text_and_descriptors);
    tcase_add_test(tests, channel_refuses_a_runt);
    tcase_add_test(tests, full_channel_says_so);
    tcase_add_test(tests, counters_never_go_backwards);
    tcase_add_test(tests, a_full_scoreboard_says_so);
    tcase_add_loop_test(tests, hostile_requests_are_readable, 0, 5);
    tcase_add_loop_test(tests, latencies_have_buckets, 0, 5);
    tcase_add_loop_test(tests, sinks_never_block, 0, 3);
    tcase_add_test(tests, shared_pipe_never_blocks);
    tcase_add_test(tests, shared_terminal_never_blocks);
    tcase_add_loop_test(tests, room_that_ends, 0, 3 * 8);
    tcase_add_loop_test(tests, fragments_that_stay, 0, 5);
    tcase_add_loop_test(tests, file_modes_ignore_the_umask, 0, 2);
    tcase_add_loop_test(tests, log_lines_are_lines, 0, 10);
    tcase_add_loop_test(tests, closed_standard_descriptors_are_filled, 0, 8);
    return suite_run(suite);
}
