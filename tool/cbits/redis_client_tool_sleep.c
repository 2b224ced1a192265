/* Sleeps until a moment of the monotonic clock, in nanoseconds; may return
   early when a signal arrives. The kernel may let a thread oversleep by its
   timer slack, 50 us unless it asks for less, so each thread asks once. */
#include <errno.h>
#include <stdint.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

void redis_client_tool_sleep_until(int64_t nanos)
{
#ifdef __linux__
	static __thread int asked = 0;
	struct timespec until = { nanos / 1000000000, nanos % 1000000000 };

	if (!asked) {
		prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
		asked = 1;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
#else
	struct timespec now;
	int64_t left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left = nanos - ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	if (left > 0) {
		struct timespec span = { left / 1000000000, left % 1000000000 };
		nanosleep(&span, NULL);
	}
#endif
}
