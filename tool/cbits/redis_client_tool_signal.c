/* Whether the process ignores a signal. */
#include <signal.h>
#include <stddef.h>

int redis_client_tool_signal_is_ignored(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}
