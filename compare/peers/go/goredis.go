package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

const clientName = "go-redis"

var notes = []string{"a connection for each caller, in a cluster a fifth of that for each primary", "GOGC=400"}

type goRedis struct{ redis.UniversalClient }

func connect(o options, callers int) (client, error) {
	address := fmt.Sprintf("%s:%d", o.host, o.port)
	var c redis.UniversalClient
	if o.cluster {
		// For each of the five primaries: a caller waits for one of them at a time.
		pool := callers / 5
		if pool < 16 {
			pool = 16
		}
		c = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}, PoolSize: pool})
	} else {
		c = redis.NewClient(&redis.Options{Addr: address, PoolSize: callers})
	}
	return goRedis{c}, c.Ping(context.Background()).Err()
}

func (c goRedis) connections() int { return int(c.PoolStats().TotalConns) }

func (c goRedis) get(key string) reply { return got(c.Get(context.Background(), key)) }

func (c goRedis) set(key, value string) reply {
	return stored(c.Set(context.Background(), key, value, 0))
}

func (c goRedis) batch(l *load, operations []operation, replies []reply) {
	ctx := context.Background()
	pipeline := c.Pipeline()
	for _, op := range operations {
		if op.set {
			pipeline.Set(ctx, l.names[op.key], l.value(op.key), 0)
		} else {
			pipeline.Get(ctx, l.names[op.key])
		}
	}
	// Each command has its own error; the one of all is the first of these.
	done, _ := pipeline.Exec(ctx)
	for i, command := range done {
		switch command := command.(type) {
		case *redis.StringCmd:
			replies[i] = got(command)
		case *redis.StatusCmd:
			replies[i] = stored(command)
		}
	}
}

func got(command *redis.StringCmd) reply {
	text, err := command.Result()
	if err == redis.Nil {
		return reply{}
	}
	return reply{text, err == nil, err}
}

func stored(command *redis.StatusCmd) reply {
	text, err := command.Result()
	return reply{text, true, err}
}
