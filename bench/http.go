package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
)

const inFlight = 64 // requests at a time, each on a connection of its own

// onHTTP measures requests a second that another process sends: reads of an
// entity, and messages to entities that are durable a little later, by as many
// senders as entities. The reference is a handler of bare echo that does nothing
// but answer with the same bytes.
func onHTTP() []measurement {
	post := func(address string) (each [][]byte) {
		for i := range inFlight {
			each = append(each, rawRequest("POST", "/v1/pods/meters/entities/"+meterName(i)+"/messages/tick", address, []byte(`{"celsius":21.5}`)))
		}
		return each
	}
	get := func(address string) (each [][]byte) {
		for range inFlight {
			each = append(each, rawRequest("GET", "/v1/pods/meters/entities/"+meterName(0), address, nil))
		}
		return each
	}
	return []measurement{
		{
			lines: []string{"http/get"}, ours: served(get), reference: bare("GET", get),
		},
		{
			lines: []string{"http/message-async-64"}, ours: served(post), reference: bare("POST", post),
		},
	}
}

// served measures the API over pods in memory whose entities exist.
func served(each func(address string) [][]byte) load {
	return func(_ string, period time.Duration) ([]float64, error) {
		return overMeters(func(api http.Handler) (rate float64, err error) {
			err = serving(api, func(address string) error {
				rate, err = requests{Address: address, Each: each(address), Period: period, Expected: http.StatusOK}.run()
				return err
			})
			return rate, err
		})
	}
}

// overMeters calls f with the API of a pod of meters that exist.
func overMeters(f func(api http.Handler) (float64, error)) (values []float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	sys := actor.NewSystem("bench", actor.Config{})
	defer func() { err = errors.Join(err, sys.Stop(ctx)) }()
	all, err := pod.Open(sys, memory.Open(memory.Config{}), pod.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, all.Close(ctx)) }()
	async := meters()
	async.Durability = entity.Async(100 * time.Millisecond)
	h, err := pod.Start(all, async)
	if err != nil {
		return nil, err
	}
	for i := range inFlight {
		if _, err := entity.Ask[entity.Ack](ctx, h.Ref(meterName(i)), tick{Celsius: 1}); err != nil {
			return nil, err
		}
	}
	api := httpapi.New(all, httpapi.Config{})
	defer api.Close()
	return one(f(api))
}

// bare measures a handler of echo that answers with the bytes that the API
// answers the first of these requests with.
func bare(method string, each func(address string) [][]byte) load {
	return func(_ string, period time.Duration) ([]float64, error) {
		var body []byte
		if _, err := overMeters(func(api http.Handler) (float64, error) {
			return 0, serving(api, func(address string) (err error) {
				body, err = firstAnswer(address, each(address)[0])
				return err
			})
		}); err != nil {
			return nil, err
		}
		router := echo.New()
		router.Add(method, "/*", func(c echo.Context) error {
			if _, err := io.Copy(io.Discard, c.Request().Body); err != nil {
				return err
			}
			h := c.Response().Header()
			h.Set("Content-Length", strconv.Itoa(len(body)))
			return c.Blob(http.StatusOK, "application/json", body)
		})
		var rate float64
		err := serving(router, func(address string) (err error) {
			rate, err = requests{Address: address, Each: each(address), Period: period, Expected: http.StatusOK}.run()
			return err
		})
		return []float64{rate}, err
	}
}

// firstAnswer returns the body of the answer to a request.
func firstAnswer(address string, request []byte) ([]byte, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// serving calls f while a handler is served on a free port of the loopback.
func serving(h http.Handler, f func(address string) error) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	err = errors.Join(f(l.Addr().String()), server.Close())
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
