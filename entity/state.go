package entity

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/twinsrv/twinsrv/snapshot"
)

// decode turns a record into a state of the spec's type (a *S) and its
// canonical encoding under the type as it is now: fields may have been added
// or removed since the record was written.
//
// A record that the type cannot take is damaged as far as this program can
// tell: the error wraps snapshot.ErrCorrupt, or snapshot.ErrNewer.
func (s *Spec) decode(r *snapshot.Record) (state any, enc []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // an Upgrade, or the type's own UnmarshalText
			state, enc, err = nil, nil, fmt.Errorf("%w: decoding the state panicked: %v", snapshot.ErrCorrupt, p)
		}
	}()
	if r.Codec != s.codec.Name() {
		return nil, nil, fmt.Errorf("%w: the state is encoded as %q and the pod's type uses %q", snapshot.ErrCorrupt, r.Codec, s.codec.Name())
	}
	data := r.State
	if r.Schema != s.Version {
		if data, err = s.upgrades.Apply(s.codec, data, r.Schema, s.Version); err != nil {
			if !errors.Is(err, snapshot.ErrNewer) {
				err = fmt.Errorf("%w: the state cannot be upgraded: %w", snapshot.ErrCorrupt, err)
			}
			return nil, nil, err
		}
	}
	p := reflect.New(s.State)
	if err := s.codec.Decode(data, p.Interface()); err != nil {
		return nil, nil, fmt.Errorf("%w: the state, of schema version %d, does not fit %s: %w (if that has changed, raise its Version and say in Upgrades how)", snapshot.ErrCorrupt, r.Schema, s.State, err)
	}
	enc, err = s.codec.Append(nil, p.Interface())
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the decoded state cannot be encoded again: %w", snapshot.ErrCorrupt, err)
	}
	return p.Interface(), enc, nil
}

// Modern returns a record as the spec's type sees it now: upgraded, with
// fields added and removed. Records of active entities are modern already.
func (s *Spec) Modern(r snapshot.Record) (snapshot.Record, error) {
	_, enc, err := s.decode(&r)
	if err != nil {
		return r, err
	}
	r.State, r.Schema = enc, s.Version
	return r, nil
}

// JSON renders the state of a modern record. A type that marshals itself to JSON
// is shown as that.
func (s *Spec) JSON(r *snapshot.Record) ([]byte, error) { return s.shower.JSON(r.State) }

// DecodeState decodes the state of a modern record into a pointer to the
// spec's state type.
func (s *Spec) DecodeState(r *snapshot.Record, into any) error {
	return s.codec.Decode(r.State, into)
}
