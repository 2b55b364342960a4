package main

import "github.com/twinsrv/twinsrv/entity"

// Feed is the state of an entity of the pod feeds: how far a feed of headlines
// has come.
type Feed struct {
	Through int `json:"through"` // the headlines through this one have had their effect
}

// FeedCame is the message "came": the headlines through one have had their
// effect.
type FeedCame struct {
	Through int `json:"through"`
}

// Feeds is the pod feeds.
var Feeds = entity.Type[Feed]{
	Name: "feeds",
	Handlers: entity.Handlers[Feed]{
		"came": entity.On(func(_ *entity.Context, f *Feed, m FeedCame) error {
			f.Through = max(f.Through, m.Through)
			return nil
		}),
	},
}
