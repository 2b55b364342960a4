package entity

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// inbox holds, for each sender of SendOnce, the last message that was taken of
// it.
type inbox map[persist.Key]cursor

type cursor struct{ life, number uint64 }

// arrival is what an inbox says of a message.
type arrival uint8

const (
	fresh arrival = iota
	taken         // it had its effect before
	early         // one before it must come first
)

// judge says whether a message is to be handled now.
func (i inbox) judge(o *once) arrival {
	c := i[o.from]
	switch {
	case o.life < c.life, o.life == c.life && o.number <= c.number:
		return taken
	case o.life > c.life && o.behind > 0, o.life == c.life && o.behind > c.number:
		return early
	}
	return fresh
}

// take moves a sender's cursor and returns the row that says so.
func (i *inbox) take(o *once) persist.RowOp {
	if *i == nil {
		*i = make(inbox)
	}
	(*i)[o.from] = cursor{o.life, o.number}
	v := binary.AppendUvarint(nil, o.life)
	return persist.RowOp{Kind: inboxRows, ID: o.from.String(), Value: binary.AppendUvarint(v, o.number)}
}

func (i *inbox) parse(r persist.Row) error {
	pod, name, ok := strings.Cut(r.ID, "/")
	life, n := binary.Uvarint(r.Value)
	if !ok || n <= 0 {
		return errors.New("it is not a cursor")
	}
	number, m := binary.Uvarint(r.Value[n:])
	if m <= 0 || n+m != len(r.Value) {
		return errors.New("it is not a cursor")
	}
	if *i == nil {
		*i = make(inbox)
	}
	(*i)[persist.Key{Pod: pod, Name: name}] = cursor{life, number}
	return nil
}
