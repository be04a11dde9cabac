#include "conf/hint.h"

#include <string.h>
#include <strings.h>

#define LENGTH_MAX 32

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Edits from `a` to `b`, a swap of neighbours counting as one (optimal string alignment). */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned rows[3][LENGTH_MAX + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= nb; j++)
        above[j] = before[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !is_same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        unsigned *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[nb];
}

void hint_consider(struct hint *hint, const char *wrong, const char *candidate, const char *shown)
{
    size_t wrong_length = strlen(wrong);
    size_t length = strlen(candidate);
    if (wrong_length > LENGTH_MAX || length > LENGTH_MAX)
        return;

    /* A third of the letters wrong is another word. */
    unsigned most = (unsigned)(wrong_length < 3 ? 0 : wrong_length < 6 ? 1 : wrong_length / 3);
    unsigned found = distance(wrong, wrong_length, candidate, length);
    /* The beginning of a word is near it. */
    if (wrong_length >= 3 && found > most && strncasecmp(wrong, candidate, wrong_length) == 0)
        found = most;
    if (found <= most && (!hint->best || found < hint->distance))
        *hint = (struct hint){ shown, found };
}
