/*
 * date: the text of the Date field (IMF-fixdate, RFC 9110, 5.6.7), made when it is needed; and
 * dates that others have written.
 */
#ifndef HTTP_DATE_H
#define HTTP_DATE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/slice.h"

#define DATE_LENGTH 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* A zeroed struct is stale. */
struct date {
    time_t second;
    char text[DATE_LENGTH + 1];
};

/* Makes the text that of now, if the second has changed since. No system call (vDSO). */
void date_refresh(struct date *date);

/* The text of any time between the years 1 and 9999. */
void date_format(char text[DATE_LENGTH + 1], time_t second);

/*
 * Reads a date in any of the three forms of RFC 9110, 5.6.7, none of them sloppily: also the day of
 * the week must be right. The two-digit year of the second form is at most 50 years after `now`.
 * False when it is none, or `text` is NULL.
 */
bool date_parse(time_t *second, struct slice text, time_t now);

#endif
