/*
 * title: what ps and top show of a process.
 *
 * The title is written over the memory of the arguments and the environment, which the kernel
 * shows as the command line; title_init moves the environment away first.
 */
#ifndef BASE_TITLE_H
#define BASE_TITLE_H

/*
 * Call once, first in main, with its own argv. Copies the arguments: *argv points to the copies
 * after it. -1 with ENOMEM: titles are then left alone.
 */
int title_init(int argc, char ***argv);

/* Sets "hayate: ..." text, cut to the room there is. Does nothing before title_init. */
void title_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
