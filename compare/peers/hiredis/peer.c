/* hiredis at its fastest: its reader and its encoder, blocking sockets, and a
 * loop of our own around them. This is what is possible, not what is convenient.
 *
 * style wait: N callers share the connections; whatever replies one read brings
 * are answered by one write with their callers' next commands.
 * style batch: each caller has a connection of its own, as with `redis-benchmark`.
 * In a cluster callers share them, because a batch falls into a piece for each
 * node, and small pieces of several callers are better sent together. */
#include "load.h"

#include "nodes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* How much one read takes at most. The reader moves what is left of its buffer
 * to the front after every kilobyte, so that larger reads make it slower. */
enum { READ_SIZE = 16 * 1024 };

struct caller;

struct pending {
  struct caller *caller;
  struct operation operation;
  uint64_t begun;
};

struct connection {
  redisContext *context;
  struct pending *queue; /* a ring, as long as the commands in flight */
  unsigned head, tail;
  int unsent;
};

struct caller {
  uint64_t stream;
  unsigned awaited;
  struct connection **nodes; /* its connection to each node */
};

static struct options opt;
static unsigned ring;

static struct connection *connections;
static unsigned connection_count;
static struct connection **unsent;
static unsigned unsent_count;

static void submit(struct caller *caller, uint64_t now) {
  struct operation operation = load_draw(&caller->stream);
  const char *words[3], *key = load_key(operation.key);
  size_t lengths[3] = {3, opt.key_size, opt.value_size};
  words[0] = operation.set ? "SET" : "GET";
  words[1] = key;
  if (operation.set) words[2] = load_value(operation.key);
  struct connection *connection = caller->nodes[node_of(&opt, key)];
  if (redisAppendCommandArgv(connection->context, operation.set ? 3 : 2, words, lengths) != REDIS_OK)
    die("%s", connection->context->errstr);
  connection->queue[connection->tail++ & (ring - 1)] = (struct pending){caller, operation, now};
  if (!connection->unsent) {
    connection->unsent = 1;
    unsent[unsent_count++] = connection;
  }
}

static void submit_batch(struct caller *caller) {
  uint64_t now = 0;
  for (unsigned i = 0; i < opt.batch; i++) {
    if (i % 8 == 0) now = load_now();
    submit(caller, now);
  }
  caller->awaited = opt.batch;
}

static void send_all(void) {
  for (unsigned i = 0; i < unsent_count; i++) {
    struct connection *connection = unsent[i];
    int done = 0;
    while (!done)
      if (redisBufferWrite(connection->context, &done) != REDIS_OK) die("%s", connection->context->errstr);
    connection->unsent = 0;
  }
  unsent_count = 0;
}

/* Reads once, and handles every reply that is complete. Answers how many
 * commands came to their end. */
static unsigned receive(struct connection *connection) {
  static char buffer[READ_SIZE];
  redisContext *context = connection->context;
  ssize_t got;
  do got = read(context->fd, buffer, sizeof buffer);
  while (got < 0 && errno == EINTR);
  if (got <= 0) die("the connection ended: %s", got == 0 ? "end of file" : strerror(errno));
  if (redisReaderFeed(context->reader, buffer, (size_t)got) != REDIS_OK) die("%s", context->reader->errstr);

  unsigned ended = 0;
  uint64_t now = load_now();
  for (;;) {
    redisReply *reply;
    if (redisReaderGetReply(context->reader, (void **)&reply) != REDIS_OK) die("%s", context->reader->errstr);
    if (reply == NULL) return ended;
    if (connection->head == connection->tail) die("a reply that nobody asked for");
    struct pending pending = connection->queue[connection->head++ & (ring - 1)];
    if (ended > 0 && !opt.batches) now = load_now();
    int go_on = load_count(load_judge(&opt, pending.operation, reply), pending.begun, now);
    freeReplyObject(reply);
    ended++;
    if (opt.batches) {
      if (--pending.caller->awaited == 0 && go_on) submit_batch(pending.caller);
    } else if (go_on) {
      submit(pending.caller, now);
    }
  }
}

static void run(struct caller *callers, unsigned caller_count) {
  int poll = -1;
  /* With a single connection the read itself waits. */
  if (connection_count > 1) {
    poll = epoll_create1(0);
    for (unsigned i = 0; i < connection_count; i++) {
      struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
      if (epoll_ctl(poll, EPOLL_CTL_ADD, connections[i].context->fd, &event)) die("epoll: %s", strerror(errno));
    }
  }
  load_start();
  for (unsigned i = 0; i < caller_count; i++) {
    if (opt.batches) submit_batch(&callers[i]);
    else submit(&callers[i], load_now());
  }
  for (;;) {
    send_all();
    unsigned left = 0;
    for (unsigned i = 0; i < connection_count && left == 0; i++) left = connections[i].tail - connections[i].head;
    if (left == 0) return;
    if (poll < 0) {
      receive(&connections[0]);
    } else {
      struct epoll_event events[64];
      int ready = epoll_wait(poll, events, 64, -1);
      for (int i = 0; i < ready; i++) receive(events[i].data.ptr);
    }
  }
}

int main(int argc, char **argv) {
  load_options(argc, argv, &opt);
  load_prepare(&opt);
  learn_nodes(&opt);

  unsigned caller_count = opt.batches ? opt.in_flight / opt.batch : opt.in_flight;
  unsigned sets = opt.batches && !opt.cluster ? caller_count : opt.connections;
  ring = 1;
  while (ring < opt.in_flight) ring *= 2;
  connection_count = sets * node_count;
  connections = calloc(connection_count, sizeof *connections);
  unsent = calloc(connection_count, sizeof *unsent);
  struct connection **table = calloc(connection_count, sizeof *table);
  struct caller *callers = calloc(caller_count, sizeof *callers);
  for (unsigned i = 0; i < connection_count; i++) {
    connections[i].context = dial(nodes[i % node_count].host, nodes[i % node_count].port);
    connections[i].context->reader->maxbuf = 0; /* keep its buffer: replies are all alike */
    connections[i].queue = calloc(ring, sizeof *connections[i].queue);
    table[i] = &connections[i];
  }
  for (unsigned i = 0; i < caller_count; i++)
    callers[i] = (struct caller){load_stream(i), 0, table + (size_t)(i % sets) * node_count};

  run(callers, caller_count);

  load_report("hiredis", VERSION, connection_count, "\"reader and encoder of hiredis, loop of our own\"");
  return 0;
}
