package actor

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// fewKids is how many children need no map.
const fewKids = 16

// kids is a set of children by name. Most families are small, and a look
// through a slice costs less than a map.
type kids struct {
	few     []*Ref          // unless there are maps
	names   map[string]*Ref //
	numbers map[uint32]*Ref // those with a generated name
}

func (k *kids) len() int { return len(k.few) + len(k.names) + len(k.numbers) }

func (k *kids) get(name string) *Ref {
	n := numberOf(name)
	switch {
	case n != 0:
		return k.numbered(n)
	case k.names != nil:
		return k.names[name]
	}
	for _, c := range k.few {
		if c.name == name && c.number == 0 {
			return c
		}
	}
	return nil
}

func (k *kids) numbered(n uint32) *Ref {
	if k.names != nil {
		return k.numbers[n]
	}
	for _, c := range k.few {
		if c.number == n {
			return c
		}
	}
	return nil
}

// put adds a child whose name is not in the set.
func (k *kids) put(c *Ref) {
	if k.names == nil && len(k.few) < fewKids {
		if len(k.few) == cap(k.few) { // once small, then as large as it may be
			k.few = append(make([]*Ref, 0, max(fewKids/4, len(k.few)*4)), k.few...)
		}
		k.few = append(k.few, c)
		return
	}
	if k.names == nil {
		k.names, k.numbers = make(map[string]*Ref), make(map[uint32]*Ref)
		for _, old := range k.few {
			k.put(old)
		}
		k.few = nil
	}
	if c.number != 0 {
		k.numbers[c.number] = c
	} else {
		k.names[c.name] = c
	}
}

// drop takes c out. False says that its name is not c's.
func (k *kids) drop(c *Ref) bool {
	switch {
	case k.names == nil:
		for i, x := range k.few {
			if x == c {
				last := len(k.few) - 1
				k.few[i], k.few[last] = k.few[last], nil
				k.few = k.few[:last]
				return true
			}
		}
		return false
	case c.number != 0 && k.numbers[c.number] == c:
		delete(k.numbers, c.number)
	case c.number == 0 && k.names[c.name] == c:
		delete(k.names, c.name)
	default:
		return false
	}
	if k.len() == 0 {
		k.names, k.numbers = nil, nil // a map does not shrink
	}
	return true
}

// all returns the children in no order.
func (k *kids) all() []*Ref {
	all := append(make([]*Ref, 0, k.len()), k.few...)
	for _, c := range k.names {
		all = append(all, c)
	}
	for _, c := range k.numbers {
		all = append(all, c)
	}
	return all
}

// A generated name is a dollar and a number to the base 36. An actor keeps the
// number only. Who gives such a name himself has the actor of that number.

const generated = '$'

// numberOf returns the number that a name stands for; 0 for other names.
func numberOf(name string) uint32 {
	if len(name) < 2 || len(name) > 8 || name[0] != generated || name[1] == '0' {
		return 0
	}
	var n uint64
	for i := 1; i < len(name); i++ {
		switch d := name[i]; {
		case '0' <= d && d <= '9':
			n = n*36 + uint64(d-'0')
		case 'a' <= d && d <= 'z':
			n = n*36 + uint64(d-'a') + 10
		default:
			return 0
		}
	}
	if n > math.MaxUint32 {
		return 0
	}
	return uint32(n)
}

func appendNumber(to []byte, n uint64) []byte {
	return strconv.AppendUint(append(to, generated), n, 36)
}

// nextName makes a name that is not in the set: a number or, after four
// billion, the name itself.
func (f *family) nextName() (name string, number uint32) {
	for {
		f.named++
		if f.named > math.MaxUint32 {
			if name = string(appendNumber(nil, f.named)); f.kids.get(name) == nil {
				return name, 0
			}
		} else if number = uint32(f.named); f.kids.numbered(number) == nil {
			return "", number
		}
	}
}

// byName compares names.
func byName(a, b *Ref) int {
	if a.number == 0 || b.number == 0 {
		return cmp.Compare(a.Name(), b.Name())
	}
	if a.number < 36 && b.number < 36 {
		return cmp.Compare(a.number, b.number)
	}
	var x, y [8]byte
	return bytes.Compare(appendNumber(x[:0], uint64(a.number)), appendNumber(y[:0], uint64(b.number)))
}
