/*
 * date: the text of the Date field (IMF-fixdate, RFC 9110, 5.6.7), made when it is needed.
 */
#ifndef HTTP_DATE_H
#define HTTP_DATE_H

#include <stdint.h>
#include <time.h>

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

#endif
