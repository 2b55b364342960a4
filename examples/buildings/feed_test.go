package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

func feedSample(t *testing.T, h pods) string {
	t.Helper()
	f, err := sampleFiles()
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, feedFiles(t.Context(), &out, h.buildings, f, quiet))
	return out.String()
}

func TestFeedOfTheSample(t *testing.T) {
	h := startInMemory(t)
	out := feedSample(t, h)
	require.Contains(t, out, "5 buildings described from buildings.csv\n")
	require.Contains(t, out, "2 of them follow the 48 readings of weather.csv; 96 messages to send\n")
	require.Contains(t, out, "96 messages sent, 96 acknowledged, 0 refused, ")

	for _, name := range []string{"tower", "mill"} {
		v, err := h.buildings.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, 48, v.State.Readings)
		require.Equal(t, uint64(1+48), v.Revision, "each reading is a durable change")
		require.InDelta(t, 13.9, *v.State.OutdoorCelsius, 0, "the last reading is missing and leaves the one before")
		require.Equal(t, "2024-05-31 23:20:00", v.State.OutdoorAt)
	}
	v, err := h.buildings.Get(t.Context(), "depot-7")
	require.NoError(t, err)
	require.Nil(t, v.State.OutdoorCelsius)
	require.Equal(t, "America/Chicago", v.State.TimeZone)
}

func TestARepeatedFeedSendsWhatIsMissing(t *testing.T) {
	h := startInMemory(t)
	f, err := sampleFiles()
	require.NoError(t, err)
	part := f
	part.readings = f.readings[:20]
	require.NoError(t, feedFiles(t.Context(), &strings.Builder{}, h.buildings, part, quiet))
	require.Contains(t, feedSample(t, h), "56 messages sent, 56 acknowledged, 0 refused")
	require.Contains(t, feedSample(t, h), "\n0 messages sent, 0 acknowledged, 0 refused")
	v, err := h.buildings.Get(t.Context(), "mill")
	require.NoError(t, err)
	require.Equal(t, uint64(49), v.Revision)
}

func TestReadingsCountOnce(t *testing.T) {
	h := startInMemory(t)
	mill := h.buildings.Ref("mill")
	c := 5.5
	ask[entity.Ack](t, mill, Outdoor{Number: 1, At: "then", Celsius: &c})
	ask[entity.Ack](t, mill, Outdoor{Number: 2})
	require.Equal(t, uint64(2), ask[entity.Ack](t, mill, Outdoor{Number: 1}).Revision)
	for _, number := range []int{4, -1} {
		_, err := entity.Ask[entity.Ack](t.Context(), mill, Outdoor{Number: number})
		require.ErrorContains(t, err, "rejected")
	}
	ask[entity.Ack](t, mill, Outdoor{})
	v, err := h.buildings.Get(t.Context(), "mill")
	require.NoError(t, err)
	require.Equal(t, 3, v.State.Readings)
	require.InDelta(t, 5.5, *v.State.OutdoorCelsius, 0)
	require.Equal(t, "then", v.State.OutdoorAt)

	ask[entity.Ack](t, mill, Describe{WeatherFile: "another.csv"})
	ask[entity.Ack](t, mill, Outdoor{Number: 1, At: "now", Celsius: &c})
	v, err = h.buildings.Get(t.Context(), "mill")
	require.NoError(t, err)
	require.Equal(t, 1, v.State.Readings, "another file is read from its beginning")
	require.Equal(t, "now", v.State.OutdoorAt)
}

// receiver takes messages in place of entities.
type receiver struct {
	entity.Directory // nil: nothing else is asked for
	h                pods
	post             func(name string, m actor.Message) error
}

func (r receiver) System() *actor.System                       { return r.h.buildings.System() }
func (r receiver) Post(key persist.Key, m actor.Message) error { return r.post(key.Name, m) }
func (r receiver) queue(name string, size int, ctx func(int)) queue {
	return queue{to: entity.NewRef(r, persist.Key{Pod: "buildings", Name: name}), size: size, at: func(i int) any {
		if ctx != nil {
			ctx(i)
		}
		return i
	}}
}

// A queue ends at its first refusal, others go on.
func TestAQueueEndsAtItsFirstRefusal(t *testing.T) {
	got := map[string][]int{}
	h := startInMemory(t)
	for name, refuse := range map[string]func(m actor.Message) error{
		"by the entity":  func(m actor.Message) error { m.Reply.Fail(entity.ErrNotFound); return nil },
		"by the mailbox": func(actor.Message) error { return actor.ErrMailboxFull },
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan func(), 1000)
			r := receiver{h: h, post: func(name string, m actor.Message) error {
				if i := m.Payload.(int); name == "b" && i == 7 {
					return refuse(m)
				}
				seen <- func() { got[name] = append(got[name], m.Payload.(int)) }
				m.Reply.Complete(entity.Ack{})
				return nil
			}}
			clear(got)
			sum := new(feed).run(t.Context(), []queue{r.queue("a", 100, nil), r.queue("b", 100, nil)}, func(int) {})
			close(seen)
			for note := range seen {
				note()
			}
			require.Equal(t, 108, sum.Sent)
			require.Equal(t, 107, sum.Acknowledged)
			require.Equal(t, 1, sum.Refused)
			require.ErrorContains(t, sum.err(), "1 messages were refused")
			require.Len(t, got["a"], 100)
			require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6}, got["b"])
		})
	}
}

// No more than inFlight messages are on their way to one entity.
func TestAFeedIsBounded(t *testing.T) {
	h := startInMemory(t)
	replies := make(chan *actor.Promise, 1000)
	r := receiver{h: h, post: func(_ string, m actor.Message) error {
		replies <- m.Reply
		return nil
	}}
	done := make(chan tally, 1)
	go func() {
		done <- new(feed).run(t.Context(), []queue{r.queue("a", inFlight+100, nil)}, func(int) {})
	}()
	for range 100 {
		(<-replies).Complete(entity.Ack{})
		require.LessOrEqual(t, len(replies), inFlight)
	}
	for range inFlight {
		(<-replies).Complete(entity.Ack{})
	}
	sum := <-done
	require.Equal(t, inFlight+100, sum.Acknowledged)
	require.NoError(t, sum.err())
}

// An interrupted feed waits for what it has sent, and sends no more.
func TestAnInterruptedFeedEnds(t *testing.T) {
	h := startInMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := receiver{h: h, post: func(_ string, m actor.Message) error {
		m.Reply.Complete(entity.Ack{})
		return nil
	}}
	sum := new(feed).run(ctx, []queue{r.queue("a", 1_000_000, func(i int) {
		if i == 10 {
			cancel()
		}
	})}, func(int) {})
	require.Equal(t, 11, sum.Sent)
	require.Equal(t, 11, sum.Acknowledged)
}

func TestDataSurvivesARestart(t *testing.T) {
	store := persisttest.NewMemory()
	h, stop := start(t, store)
	feedSample(t, h)
	stop()
	h, _ = start(t, store.Again())
	v, err := h.buildings.Get(t.Context(), "tower")
	require.NoError(t, err)
	require.Equal(t, 48, v.State.Readings)
	require.Contains(t, feedSample(t, h), "\n0 messages sent, 0 acknowledged, 0 refused")
}
