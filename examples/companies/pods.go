package main

import (
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// definitions are the types of the example, as a server is started with them.
// Companies make a digest every so often.
func definitions(f *facts, every time.Duration, at *atomic.Pointer[desk]) []entity.Definition {
	return []entity.Definition{companyType(f, every), Sectors, Feeds, rankingType(at)}
}

// pods are the pods of the example that a feed uses.
type pods struct {
	companies *pod.Handle[Company]
	sectors   *pod.Handle[Sector]
	feeds     *pod.Handle[Feed]
}

// findPods finds the pods of a server that was started with the definitions.
func findPods(all *pod.Pods) (h pods, err error) {
	if h.companies, err = find[Company](all, "companies"); err != nil {
		return pods{}, err
	}
	if h.sectors, err = find[Sector](all, "sectors"); err != nil {
		return pods{}, err
	}
	h.feeds, err = find[Feed](all, "feeds")
	return h, err
}

func find[S any](all *pod.Pods, name string) (*pod.Handle[S], error) {
	p, err := all.Pod(name)
	if err != nil {
		return nil, err
	}
	return &pod.Handle[S]{Pod: p}, nil
}
