/* Nanoseconds of a monotonic clock that may be up to one kernel tick (1-4 ms)
   old, but costs no instruction that serialises the processor. */
#include <stdint.h>
#include <time.h>

#ifdef CLOCK_MONOTONIC_COARSE
#define REDIS_CLIENT_CLOCK CLOCK_MONOTONIC_COARSE
#else
#define REDIS_CLIENT_CLOCK CLOCK_MONOTONIC
#endif

int64_t redis_client_coarse_nanos(void)
{
	struct timespec t;
	clock_gettime(REDIS_CLIENT_CLOCK, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
