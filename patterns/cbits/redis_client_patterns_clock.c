/* Nanoseconds of a clock that also runs while the machine is suspended, where
   the system has one: leases at the server run meanwhile, too. */
#include <stdint.h>
#include <time.h>

#ifdef CLOCK_BOOTTIME
#define REDIS_CLIENT_PATTERNS_CLOCK CLOCK_BOOTTIME
#else
#define REDIS_CLIENT_PATTERNS_CLOCK CLOCK_MONOTONIC
#endif

int64_t redis_client_patterns_nanos(void)
{
	struct timespec t;
	clock_gettime(REDIS_CLIENT_PATTERNS_CLOCK, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
