#include "base/modules.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define MODULES 24

/* The mappings are the process's, and so is the table. */
static struct {
    struct module items[MODULES]; /* the program first */
    size_t count;
} table;

static void take_part(struct module *module, const ElfW(Phdr) * part)
{
    uintptr_t start = module->base + part->p_vaddr, end = start + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME) {
        module->unwind = (const uint8_t *)start; /* NOLINT(performance-no-int-to-ptr) */
        module->unwind_size = part->p_memsz;
    } else if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
        module->start = start < module->start ? start : module->start;
        module->end = end > module->end ? end : module->end;
    }
}

static int add(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    struct module module = { .base = info->dlpi_addr, .start = UINTPTR_MAX };
    if (table.count == MODULES)
        return 1;
    for (int i = 0; i < info->dlpi_phnum; i++)
        take_part(&module, &info->dlpi_phdr[i]);
    const char *name = info->dlpi_name ? info->dlpi_name : "", *slash = strrchr(name, '/');
    snprintf(module.name, sizeof(module.name), "%s",
             table.count == 0 ? PACKAGE_NAME
             : slash          ? slash + 1
                              : name);
    if (module.start < module.end)
        table.items[table.count++] = module;
    return 0;
}

void modules_list(void)
{
    if (table.count == 0)
        dl_iterate_phdr(add, NULL);
}

const struct module *modules_find(uintptr_t address)
{
    for (size_t i = 0; i < table.count; i++)
        if (address >= table.items[i].start && address < table.items[i].end)
            return &table.items[i];
    return NULL;
}
