package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

func ask[T any](t *testing.T, to entity.Ref, msg any) T {
	t.Helper()
	v, err := entity.Ask[T](t.Context(), to, msg)
	require.NoError(t, err)
	return v
}

// eventually waits until the building comes to what is wanted: what a room says
// is on its way for a moment.
func (h pods) eventually(t *testing.T, building string, want Summary) {
	t.Helper()
	var got Summary
	require.Eventually(t, func() bool {
		v, err := h.buildings.Get(t.Context(), building)
		got = v.State.Total
		return err == nil && got == want
	}, 10*time.Second, time.Millisecond, "wanted %+v", want)
}

// measured is the summary of so many rooms with temperatures, of which the sum in
// thousandths of a °C is given.
func measured(s Summary, rooms int, milli int64) Summary {
	s.Measured, s.MilliCelsius, s.Celsius = rooms, milli, float64(milli)/float64(rooms)/1000
	return s
}

func TestReadingsRollUp(t *testing.T) {
	h := startInMemory(t)
	ask[entity.Ack](t, h.rooms.Ref("tower-3-21"), Measured{Celsius: 21.5})
	require.Equal(t, 2, ask[int](t, h.rooms.Ref("tower-3-21"), Enter{People: 2}))
	h.eventually(t, "tower", measured(Summary{Rooms: 1, Occupants: 2}, 1, 21_500))

	ask[entity.Ack](t, h.rooms.Ref("tower-3-22"), Measured{Celsius: 30})
	ask[entity.Ack](t, h.rooms.Ref("tower-1-1"), Measured{Celsius: 20})
	ask[int](t, h.rooms.Ref("tower-1-2"), Enter{People: 5})
	h.eventually(t, "tower", measured(Summary{Rooms: 4, Occupants: 7, Alarms: 1}, 3, 71_500))

	require.Equal(t, 0, ask[int](t, h.rooms.Ref("tower-3-21"), Enter{People: -2}))
	ask[entity.Ack](t, h.rooms.Ref("tower-3-22"), Measured{Celsius: 22})
	h.eventually(t, "tower", measured(Summary{Rooms: 4, Occupants: 5}, 3, 63_500))

	floor, err := h.floors.Get(t.Context(), "tower-3")
	require.NoError(t, err)
	require.Equal(t, "tower", floor.State.Building)
	require.Equal(t, map[string]Summary{
		"tower-3-21": measured(Summary{Rooms: 1}, 1, 21_500),
		"tower-3-22": measured(Summary{Rooms: 1}, 1, 22_000),
	}, floor.State.Rooms)
}

// What a floor or a building has lost by being deleted is made good by the next
// message, since each holds all that the part adds.
func TestADeletedFloorIsMadeGoodByTheNextMessage(t *testing.T) {
	store := persisttest.NewMemory()
	h, _ := start(t, store)
	room := h.rooms.Ref("tower-3-21")
	ask[int](t, room, Enter{People: 2})
	h.eventually(t, "tower", Summary{Rooms: 1, Occupants: 2})
	require.NoError(t, h.floors.Delete(t.Context(), "tower-3"))
	require.NoError(t, h.buildings.Delete(t.Context(), "tower"))

	require.Equal(t, 3, ask[int](t, room, Enter{People: 1}))
	h.eventually(t, "tower", Summary{Rooms: 1, Occupants: 3})

	require.NoError(t, h.buildings.Delete(t.Context(), "tower"))
	ask[entity.Ack](t, room, Report{})
	h.eventually(t, "tower", Summary{Rooms: 1, Occupants: 3})
	require.NoError(t, h.buildings.Delete(t.Context(), "tower"))
	ask[entity.Ack](t, h.floors.Ref("tower-3"), Report{})
	h.eventually(t, "tower", Summary{Rooms: 1, Occupants: 3})
}

func TestAClosedRoomCountsNoMore(t *testing.T) {
	h := startInMemory(t)
	ask[int](t, h.rooms.Ref("a-b-1-1"), Enter{People: 2})
	ask[int](t, h.rooms.Ref("a-b-1-2"), Enter{People: 3})
	h.eventually(t, "a-b", Summary{Rooms: 2, Occupants: 5})
	ask[entity.Ack](t, h.rooms.Ref("a-b-1-2"), Close{})
	h.eventually(t, "a-b", Summary{Rooms: 1, Occupants: 2})
	ask[entity.Ack](t, h.rooms.Ref("a-b-1-1"), Close{})
	h.eventually(t, "a-b", Summary{})
	v, err := h.buildings.Get(t.Context(), "a-b")
	require.NoError(t, err)
	require.Empty(t, v.State.Floors)
}

func TestRefusals(t *testing.T) {
	h := startInMemory(t)
	ask[int](t, h.rooms.Ref("tower-3-21"), Enter{People: 2})
	rejected := func(to entity.Ref, msg any) {
		t.Helper()
		_, err := entity.Ask[any](t.Context(), to, msg)
		var r *entity.RejectedError
		require.True(t, errors.As(err, &r), "%v", err)
	}
	absent := func(to entity.Ref, msg any) {
		t.Helper()
		_, err := entity.Ask[any](t.Context(), to, msg)
		require.ErrorIs(t, err, entity.ErrNotFound)
	}
	rejected(h.rooms.Ref("tower-3-21"), Enter{People: -3})
	rejected(h.rooms.Ref("tower-3-21"), Enter{People: 1 << 40})
	rejected(h.rooms.Ref("tower-3-21"), Enter{People: -1 << 63})
	rejected(h.rooms.Ref("tower-3-21"), Measured{Celsius: -9999})
	rejected(h.rooms.Ref("tower-3-99"), Measured{Celsius: -9999})
	rejected(h.floors.Ref("tower-3"), RoomChanged{Room: "mill-3-21", Now: Summary{Rooms: 1}})
	rejected(h.buildings.Ref("tower"), FloorChanged{Floor: "mill-3", Now: Summary{Rooms: 1}})
	absent(h.rooms.Ref("cellar"), Measured{Celsius: 20})
	absent(h.rooms.Ref("tower-3-22"), Report{})
	absent(h.rooms.Ref("tower-3-22"), Close{})
	absent(h.rooms.Ref("tower-3-22"), Summarise{})
	absent(h.floors.Ref("tower-4"), Report{})
	h.eventually(t, "tower", Summary{Rooms: 1, Occupants: 2})
	v, err := h.rooms.Get(t.Context(), "tower-3-21")
	require.NoError(t, err)
	require.Equal(t, uint64(1), v.Revision)
	_, err = h.rooms.Get(t.Context(), "tower-3-99")
	require.ErrorIs(t, err, entity.ErrNotFound)
}

func TestNamesSayWhereAPartIs(t *testing.T) {
	require.Equal(t, "tower-3", partOf("tower-3-21"))
	require.Equal(t, "tower", partOf("tower-3"))
	require.Equal(t, "", partOf("tower"))
}
