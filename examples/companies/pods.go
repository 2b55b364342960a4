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
	if h.companies, err = pod.Find[Company](all, "companies"); err != nil {
		return pods{}, err
	}
	if h.sectors, err = pod.Find[Sector](all, "sectors"); err != nil {
		return pods{}, err
	}
	h.feeds, err = pod.Find[Feed](all, "feeds")
	return h, err
}
