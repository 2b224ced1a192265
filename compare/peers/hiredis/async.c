/* hiredis as its own users have many commands in flight: its asynchronous
 * interface, with a callback per reply, on libev. One connection to each node,
 * or as many as are asked for, shared by N callers, each of which waits for a
 * reply before it sends its next command.
 *
 * style batch: a caller sends its next 64 once it has all replies of the last. */
#include "load.h"

#include "nodes.h"
#include <hiredis/adapters/libev.h>
#include <hiredis/async.h>
#include <stdlib.h>
#include <string.h>

struct caller;

/* What a callback is told; as many as there are commands in flight. */
struct command {
  struct caller *caller;
  struct operation operation;
  uint64_t begun;
};

struct caller {
  uint64_t stream;
  unsigned awaited;
  redisAsyncContext **nodes;
  struct command *commands;
};

static struct options opt;
static struct ev_loop *loop;
static unsigned busy, unconnected;

static void begin(struct caller *caller);

static void on_reply(redisAsyncContext *context, void *answer, void *argument) {
  struct command *command = argument;
  struct caller *caller = command->caller;
  if (answer == NULL) die("the connection ended: %s", context->errstr);
  int go_on = load_count(load_judge(&opt, command->operation, answer), command->begun, load_now());
  if (--caller->awaited > 0) return;
  if (go_on) begin(caller);
  else if (--busy == 0) ev_break(loop, EVBREAK_ALL);
}

static void begin(struct caller *caller) {
  unsigned count = opt.batches ? opt.batch : 1;
  uint64_t now = 0;
  caller->awaited = count;
  for (unsigned i = 0; i < count; i++) {
    if (i % 8 == 0) now = load_now();
    struct operation operation = load_draw(&caller->stream);
    const char *key = load_key(operation.key);
    const char *words[3] = {operation.set ? "SET" : "GET", key, operation.set ? load_value(operation.key) : NULL};
    const size_t lengths[3] = {3, opt.key_size, opt.value_size};
    caller->commands[i] = (struct command){caller, operation, now};
    if (redisAsyncCommandArgv(caller->nodes[node_of(&opt, key)], on_reply, &caller->commands[i], operation.set ? 3 : 2,
                              words, lengths) != REDIS_OK)
      die("the connection ended");
  }
}

static void on_connect(const redisAsyncContext *context, int status) {
  if (status != REDIS_OK) die("%s:%d: %s", context->c.tcp.host, context->c.tcp.port, context->errstr);
  if (--unconnected == 0) ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv) {
  load_options(argc, argv, &opt);
  load_prepare(&opt);
  learn_nodes(&opt);
  loop = EV_DEFAULT;

  unsigned callers = opt.batches ? opt.in_flight / opt.batch : opt.in_flight;
  unsigned connections = opt.connections * node_count;
  redisAsyncContext **table = calloc(connections, sizeof *table);
  unconnected = connections;
  for (unsigned i = 0; i < connections; i++) {
    table[i] = redisAsyncConnect(nodes[i % node_count].host, nodes[i % node_count].port);
    if (table[i] == NULL || table[i]->err) die("%s", table[i] ? table[i]->errstr : "no memory");
    table[i]->c.reader->maxbuf = 0; /* keep its buffer: replies are all alike */
    redisLibevAttach(EV_A_ table[i]);
    redisAsyncSetConnectCallback(table[i], on_connect);
  }
  ev_run(loop, 0);

  struct caller *all = calloc(callers, sizeof *all);
  busy = callers;
  load_start();
  for (unsigned i = 0; i < callers; i++) {
    all[i] = (struct caller){load_stream(i), 0, table + (size_t)(i % opt.connections) * node_count,
                             calloc(opt.batches ? opt.batch : 1, sizeof(struct command))};
    begin(&all[i]);
  }
  ev_run(loop, 0);
  load_report("hiredis async", VERSION, connections, "\"asynchronous interface, libev\"");
  return 0;
}
