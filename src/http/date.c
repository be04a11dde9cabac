#include "http/date.h"

#include <stdio.h>
#include <string.h>

#define DAY 86400

/* Year, month and day of a day counted from 1970-01-01: years begin in March, so that the leap day
 * is their last, and repeat every 400 (146,097 days). */
static void civil(int64_t days, unsigned *year, unsigned *month, unsigned *day)
{
    int64_t shifted = days + 719468; /* from 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    unsigned in_era = (unsigned)(shifted - era * 146097);
    unsigned of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    unsigned in_year = in_era - (365 * of_era + of_era / 4 - of_era / 100);
    unsigned march = (5 * in_year + 2) / 153;
    *day = in_year - (153 * march + 2) / 5 + 1;
    *month = march < 10 ? march + 3 : march - 9;
    *year = (unsigned)(of_era + era * 400) + (*month <= 2);
}

void date_format(char text[DATE_LENGTH + 1], time_t second)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t day_number = second / DAY - (second % DAY < 0);
    unsigned in_day = (unsigned)(second - day_number * DAY);
    unsigned weekday = (unsigned)((day_number % 7 + 11) % 7); /* 1970-01-01 was a Thursday */
    unsigned year, month, day;
    char line[64];

    civil(day_number, &year, &month, &day);
    snprintf(line, sizeof line, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * weekday, day,
             months + 3 * (month - 1), year, in_day / 3600, in_day / 60 % 60, in_day % 60);
    memcpy(text, line, DATE_LENGTH);
    text[DATE_LENGTH] = '\0';
}

void date_refresh(struct date *date)
{
    time_t now = time(NULL);
    if (now == date->second && date->text[0])
        return;
    date->second = now;
    date_format(date->text, now);
}
