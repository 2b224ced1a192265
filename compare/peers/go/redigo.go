package main

import (
	"fmt"
	"unsafe"

	"github.com/gomodule/redigo/redis"
)

const clientName = "redigo"

var notes = []string{"a connection for each caller", "GOGC=400"}

type redigo struct{ *redis.Pool }

func connect(o options, callers int) (client, error) {
	if o.cluster {
		return nil, fmt.Errorf("--cluster: it knows no cluster")
	}
	pool := &redis.Pool{
		MaxIdle: callers, MaxActive: callers, Wait: true,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", fmt.Sprintf("%s:%d", o.host, o.port)) },
	}
	connection := pool.Get()
	_, err := connection.Do("PING")
	if closed := connection.Close(); err == nil {
		err = closed
	}
	return redigo{pool}, err
}

func (c redigo) connections() int { return c.ActiveCount() }

func (c redigo) get(key string) reply {
	connection := c.Get()
	defer connection.Close()
	return said(connection.Do("GET", key))
}

func (c redigo) set(key, value string) reply {
	connection := c.Get()
	defer connection.Close()
	return said(connection.Do("SET", key, value))
}

func (c redigo) batch(l *load, operations []operation, replies []reply) {
	connection := c.Get()
	defer connection.Close()
	var err error
	for _, op := range operations {
		if op.set {
			err = connection.Send("SET", l.names[op.key], l.value(op.key))
		} else {
			err = connection.Send("GET", l.names[op.key])
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = connection.Flush()
	}
	for i := range operations {
		if err != nil {
			replies[i] = reply{err: err}
		} else {
			replies[i] = said(connection.Receive())
		}
	}
}

func said(answer interface{}, err error) reply {
	switch answer := answer.(type) {
	case []byte:
		// Without a copy: redigo gives these bytes away.
		return reply{unsafe.String(unsafe.SliceData(answer), len(answer)), true, err}
	case string:
		return reply{answer, true, err}
	}
	return reply{err: err}
}
