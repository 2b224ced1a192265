/* What every peer has, apart from its library: the options, the stream of
 * operations, the clock of the window, the counts, the JSON object at the end.
 * See compare/PROTOCOL.md. */
#ifndef LOAD_H
#define LOAD_H

#include <stddef.h>
#include <stdint.h>

struct options {
  const char *host;
  int port;
  int cluster;
  uint64_t set_below; /* a draw whose lower half is below this is a SET */
  const char *operation;
  int misses;
  unsigned in_flight;
  int batches; /* the style: batch, not wait */
  unsigned batch;
  unsigned keys, key_size, value_size;
  double warmup, duration;
  uint64_t seed;
  unsigned connections;
};

/* One command: the number of its key, and whether it is a SET. */
struct operation {
  uint32_t key;
  int set;
};

enum outcome { HIT, MISS, STORED, WRONG, FAILED };

/* Reads the command line; ends the process if it is wrong. */
void load_options(int argc, char **argv, struct options *options);

/* Makes keys and values. */
void load_prepare(const struct options *options);

/* The state of a caller's stream, and the next draw from it. */
uint64_t load_stream(unsigned caller);
struct operation load_draw(uint64_t *state);

const char *load_key(uint32_t number);
const char *load_value(uint32_t number);

/* Nanoseconds. */
uint64_t load_now(void);

/* Starts the clock: warm-up, then the window. */
void load_start(void);

/* Counts a reply that came at the time `now`, to a command begun at `begun`.
 * Says whether callers go on. */
int load_count(enum outcome outcome, uint64_t begun, uint64_t now);

/* Prints the JSON object. */
void load_report(const char *client, const char *version, unsigned connections, const char *notes);

/* One line on standard error, and the end. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
