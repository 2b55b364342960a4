package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

func TestASimulatedDay(t *testing.T) {
	t.Parallel()
	h := startInMemory(t)
	var out strings.Builder
	require.NoError(t, simulateDay(t.Context(), &out, h))
	require.Regexp(t, `a day in the 24 rooms of tower: \d{4} messages sent, \d{4} acknowledged, 0 refused`, out.String())

	rooms, _, err := h.rooms.List(t.Context(), persist.ListOptions{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, rooms, floorCount*roomsOnFloor)
	floors, all := map[string]Summary{}, Summary{}
	for _, r := range rooms {
		require.NotNil(t, r.State.Celsius)
		require.Equal(t, partOf(r.Name), r.State.Floor)
		floors[r.State.Floor] = floors[r.State.Floor].changed(Summary{}, r.State.summary())
		all = all.changed(Summary{}, r.State.summary())
	}
	tower, err := h.buildings.Get(t.Context(), "tower")
	require.NoError(t, err)
	require.Equal(t, floors, tower.State.Floors)
	require.Equal(t, all, tower.State.Total)
	require.Positive(t, tower.State.Total.Occupants)
	require.Equal(t, 1, tower.State.Total.Alarms)
	require.NotNil(t, tower.State.OutdoorCelsius)

	again := startInMemory(t)
	require.NoError(t, simulateDay(t.Context(), &strings.Builder{}, again))
	same, err := again.buildings.Get(t.Context(), "tower")
	require.NoError(t, err)
	require.Equal(t, tower.State, same.State, "the day is the same each time")
}

// A day goes on while any of its buildings lacks weather, and not because one was
// deleted.
func TestADayIsOverWhenAllHaveTheirWeather(t *testing.T) {
	h := startInMemory(t)
	day := func() string {
		var out strings.Builder
		require.NoError(t, simulateDay(t.Context(), &out, h))
		return out.String()
	}
	day()
	require.Contains(t, day(), "nothing is simulated")
	mill := h.buildings.Ref("mill")
	before, err := h.buildings.Get(t.Context(), "mill")
	require.NoError(t, err)
	for _, file := range []string{"other.csv", before.State.WeatherFile} { // it begins anew
		ask[entity.Ack](t, mill, Describe{WeatherFile: file})
	}
	require.NotContains(t, day(), "nothing is simulated")
	after, err := h.buildings.Get(t.Context(), "mill")
	require.NoError(t, err)
	require.Equal(t, before.State, after.State)
	require.NoError(t, h.buildings.Delete(t.Context(), "mill"))
	require.Contains(t, day(), "nothing is simulated")
}

func TestNothingIsSimulatedWhereSomethingIs(t *testing.T) {
	h := startInMemory(t)
	ask[int](t, h.rooms.Ref("mill-1-1"), Enter{People: 1})
	var out strings.Builder
	require.NoError(t, simulateDay(t.Context(), &out, h))
	require.Contains(t, out.String(), "nothing is simulated")
	_, err := h.buildings.Get(t.Context(), "tower")
	require.Error(t, err)
}
