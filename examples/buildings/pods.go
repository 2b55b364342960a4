package main

import (
	"context"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// definitions are the types of the example, as a server is started with them.
var definitions = []entity.Definition{Buildings, Floors, Rooms}

// pods are the three pods of the example.
type pods struct {
	buildings *pod.Handle[Building]
	floors    *pod.Handle[Floor]
	rooms     *pod.Handle[Room]
}

// findPods finds the pods of a server that was started with the definitions.
func findPods(all *pod.Pods) (h pods, err error) {
	if h.buildings, err = pod.Find[Building](all, Buildings.Name); err != nil {
		return pods{}, err
	}
	if h.floors, err = pod.Find[Floor](all, Floors.Name); err != nil {
		return pods{}, err
	}
	h.rooms, err = pod.Find[Room](all, Rooms.Name)
	return h, err
}

// empty reports whether no pod has an entity.
func (h pods) empty(ctx context.Context) (bool, error) {
	for _, p := range []*pod.Pod{h.buildings.Pod, h.floors.Pod, h.rooms.Pod} {
		page, err := p.List(ctx, persist.ListOptions{Limit: 1})
		if err != nil {
			return false, err
		}
		if len(page.Items) > 0 {
			return false, nil
		}
	}
	return true, nil
}
