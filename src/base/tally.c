#include "base/tally.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define US INT64_C(1000)
#define MS CLOCK_MILLISECOND
#define S CLOCK_SECOND

const int64_t tally_bounds[TALLY_BUCKETS] = {
    100 * US, 250 * US, 500 * US, 1 * MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS,   50 * MS,
    100 * MS, 250 * MS, 500 * MS, 1 * S,  2500 * MS, 5 * S,  10 * S,  INT64_MAX,
};

static size_t size_of(size_t nroutes)
{
    return sizeof(struct tally) + (nroutes + 1) * sizeof(struct tally_route);
}

struct tally *tally_new(size_t nroutes, int *fd)
{
    int memory = memfd_create("hayate-tally", MFD_CLOEXEC);
    void *tally = MAP_FAILED;
    if (memory != -1 && ftruncate(memory, (off_t)size_of(nroutes)) == 0)
        tally = mmap(NULL, size_of(nroutes), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (tally == MAP_FAILED) {
        fd_close(&memory);
        return NULL;
    }
    *fd = memory;
    return tally;
}

struct tally *tally_open(size_t nroutes, int fd)
{
    struct stat status;
    if (fstat(fd, &status) == -1)
        return NULL;
    if (status.st_size != (off_t)size_of(nroutes)) {
        errno = EPROTO;
        return NULL;
    }
    void *tally = mmap(NULL, size_of(nroutes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return tally == MAP_FAILED ? NULL : tally;
}

void tally_free(struct tally *tally, size_t nroutes)
{
    if (tally)
        munmap(tally, size_of(nroutes));
}

void tally_latency(struct tally *tally, int64_t ns, unsigned answers)
{
    unsigned bucket = 0;
    while (ns > tally_bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&tally->latency[bucket], answers, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->latency_sum, (uint64_t)ns * answers, memory_order_relaxed);
}
