/*
 * Any bytes as a configuration: what loads, prints as a text that loads to the same again.
 *
 * clang only: tests/fuzz/fuzz_conf -max_len=4096 CORPUS
 */
#include <stdint.h>
#include <stdlib.h>

#include "answer/answer.h"
#include "conf/load.h"
#include "conf/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct conf *load(struct slice text)
{
    /* A fuzzer must not read files of its own finding. */
    static const char *const overrides[] = { "include=[]", NULL };
    const struct conf_request request = { "fuzz.conf", overrides, answer_kinds() };
    struct conf_error error;
    struct conf *conf = load_bytes(&request, text, &error);
    if (!conf && error.text[0] == '\0')
        abort();
    /* What our own look at the text lets through, libconfig parses. */
    size_t length = strlen(error.text);
    if (length > 12 && strcmp(error.text + length - 12, "syntax error") == 0)
        abort();
    return conf;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf first = { 0 }, second = { 0 };
    struct conf *conf = load((struct slice){ (const char *)data, size });
    if (!conf)
        return 0;
    if (conf_print(&first, conf) == -1)
        abort();
    conf_free(conf);
    conf = load(buf_slice(&first));
    if (!conf || conf_print(&second, conf) == -1 ||
        !slice_equal(buf_slice(&first), buf_slice(&second)))
        abort();
    conf_free(conf);
    buf_fini(&first);
    buf_fini(&second);
    return 0;
}
