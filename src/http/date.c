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

/* As strptime(3) reads them, which takes much else too. */
static const char *const forms[] = {
    "%a, %d %b %Y %H:%M:%S GMT",
    "%A, %d-%b-%y %H:%M:%S GMT",
    "%a %b %e %H:%M:%S %Y",
};
enum { FORM_FIXED, FORM_TWO_DIGITS, FORM_ASCTIME, FORM_COUNT };

/* Is the time of these fields written so in this form, byte for byte? */
static bool is_written(const char *text, int form, const struct tm *tm, time_t *second)
{
    static const char *const days[] = {
        "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
    };
    struct tm copy = *tm;
    char fixed[DATE_LENGTH + 1], again[64];
    *second = timegm(&copy);
    date_format(fixed, *second);
    const char *day = fixed + 5, *month = fixed + 8, *year = fixed + 12, *time = fixed + 17;
    if (form == FORM_FIXED)
        return strcmp(text, fixed) == 0;
    if (form == FORM_TWO_DIGITS)
        snprintf(again, sizeof again, "%s, %.2s-%.3s-%.2s %.8s GMT", days[copy.tm_wday], day, month,
                 year + 2, time);
    else
        snprintf(again, sizeof again, "%.3s %.3s %2d %.8s %.4s", fixed, month, copy.tm_mday, time,
                 year);
    return strcmp(text, again) == 0;
}

/* The year is of this century, or of the last if it is more than 50 years ahead so. */
static bool is_written_short(const char *text, struct tm *tm, time_t *second, time_t now)
{
    struct tm today;
    if (!gmtime_r(&now, &today))
        return false;
    struct tm last = today;
    last.tm_year += 50;
    tm->tm_year = tm->tm_year % 100 + today.tm_year / 100 * 100;
    struct tm copy = *tm;
    if (timegm(&copy) > timegm(&last))
        tm->tm_year -= 100;
    return is_written(text, FORM_TWO_DIGITS, tm, second);
}

bool date_parse(time_t *second, struct slice text, time_t now)
{
    char copy[64];
    if (!text.data || text.length >= sizeof copy || memchr(text.data, '\0', text.length))
        return false;
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    for (int form = 0; form < FORM_COUNT; form++) {
        struct tm tm = { 0 };
        if (strptime(copy, forms[form], &tm))
            return form == FORM_TWO_DIGITS ? is_written_short(copy, &tm, second, now)
                                           : is_written(copy, form, &tm, second);
    }
    return false;
}

void date_refresh(struct date *date)
{
    time_t now = time(NULL);
    if (now == date->second && date->text[0])
        return;
    date->second = now;
    date_format(date->text, now);
}
