package entity

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/snapshot"
)

type lamp struct {
	On     bool     `json:"on"`
	Scenes []string `json:"scenes"`
}

type (
	turn   struct{ On bool }
	dim    struct{ Percent int }
	scene  struct{ Names []string }
	status struct{}
	opaque struct{ F func() }
)

func onTurn() Handler[lamp] {
	return On(func(_ *Context, l *lamp, m turn) error { l.On = m.On; return nil })
}

// TestDefinitionsRefused: what cannot work is refused when it is started, with
// words that say what and where.
func TestDefinitionsRefused(t *testing.T) {
	valid := func() Type[lamp] { return Type[lamp]{Name: "lamps", Handlers: Handlers[lamp]{"turn": onTurn()}} }
	for name, c := range map[string]struct {
		def  Definition
		says string
	}{
		"no name":              {Type[lamp]{}, "Name"},
		"bad name":             {Type[lamp]{Name: "Lamps"}, "[a-z0-9]"},
		"unexported field":     {Type[struct{ a int }]{Name: "x"}, "a"},
		"interface":            {Type[struct{ A any }]{Name: "x"}, "A"},
		"function":             {Type[struct{ A func() }]{Name: "x"}, "A"},
		"same message twice":   {with(valid(), func(d *Type[lamp]) { d.Handlers["switch"] = onTurn() }), "same Go type"},
		"message without name": {with(valid(), func(d *Type[lamp]) { d.Handlers[""] = onTurn(); delete(d.Handlers, "turn") }), `lamps: message "": a message's name must not be empty`},
		"empty handler":        {with(valid(), func(d *Type[lamp]) { d.Handlers["x"] = Handler[lamp]{} }), "empty"},
		"message of no codec":  {with(valid(), func(d *Type[lamp]) { d.Handlers["x"] = On(func(*Context, *lamp, opaque) error { return nil }) }), "F"},
		"reply of no codec": {with(valid(), func(d *Type[lamp]) {
			d.Handlers["x"] = Query(func(*Context, *lamp, status) (any, error) { return nil, nil })
		}), "reply"},
		"creation by nobody": {with(valid(), func(d *Type[lamp]) { d.Create.By = []string{"burn"} }), "burn"},
		"creation by a query": {with(valid(), func(d *Type[lamp]) {
			d.Create.By = []string{"q"}
			d.Handlers["q"] = Query(func(*Context, *lamp, status) (int, error) { return 0, nil })
		}), "query"},
		"upgrade of the present version": {with(valid(), func(d *Type[lamp]) {
			d.Version, d.Upgrades = 2, snapshot.Upgrades{1: nil, 2: nil}
		}), "Upgrades of lamps: the upgrade from schema version 2 would never run, since the present version is 2: an upgrade stands under the version that it starts from; raise the version to 3"},
		"upgrade without a version": {with(valid(), func(d *Type[lamp]) { d.Upgrades = snapshot.Upgrades{0: nil} }), "raise the version to 1"},
		"bad pattern":               {with(valid(), func(d *Type[lamp]) { d.Create.Names = "(" }), "pattern"},
		"bad document":              {Document{Name: "d", Create: Creation{By: []string{"x"}}}, "x"},
	} {
		_, err := c.def.Spec()
		require.ErrorIs(t, err, ErrDefinition, name)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := valid().Spec()
	require.NoError(t, err)
}

func with(d Type[lamp], edit func(*Type[lamp])) Type[lamp] { edit(&d); return d }

// TestMessagesAreDetached: what a sender does to a message after sending it
// does not reach the entity.
func TestMessagesAreDetached(t *testing.T) {
	spec, err := Type[lamp]{Name: "lamps", Handlers: Handlers[lamp]{
		"scene": On(func(_ *Context, l *lamp, m scene) error { l.Scenes = m.Names; return nil }),
	}}.Spec()
	require.NoError(t, err)
	sent := scene{Names: []string{"dawn"}}
	m, err := spec.Wrap(sent)
	require.NoError(t, err)
	sent.Names[0] = "dusk"
	got, err := m.value(spec.codec)
	require.NoError(t, err)
	require.Equal(t, scene{Names: []string{"dawn"}}, got)
}

func TestCreationPolicy(t *testing.T) {
	d := Type[lamp]{
		Name: "lamps",
		Init: func(context.Context, string) (lamp, error) { return lamp{}, nil },
		Handlers: Handlers[lamp]{
			"turn":   onTurn(),
			"dim":    On(func(*Context, *lamp, dim) error { return nil }),
			"status": Query(func(*Context, *lamp, status) (bool, error) { return true, nil }),
		},
	}
	creates := func(d Type[lamp], name string, msg any) error {
		spec, err := d.Spec()
		require.NoError(t, err)
		m, err := spec.Wrap(msg)
		require.NoError(t, err)
		return spec.mayCreate(name, m)
	}
	require.NoError(t, creates(d, "x", turn{}))
	require.ErrorIs(t, creates(d, "x", status{}), ErrNotFound)
	d.Create.By = []string{"dim"}
	require.ErrorIs(t, creates(d, "x", turn{}), ErrNotFound)
	require.NoError(t, creates(d, "x", dim{}))
	d.Create.Names = "lamp-[0-9]+"
	require.ErrorIs(t, creates(d, "x", dim{}), ErrNotFound)
	require.ErrorIs(t, creates(d, "my-lamp-1-x", dim{}), ErrNotFound, "the whole name must match")
	require.NoError(t, creates(d, "lamp-1", dim{}))
	d.Create.By = []string{}
	require.ErrorIs(t, creates(d, "lamp-1", dim{}), ErrNotFound, "an empty list lets nothing create")
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	spec, err := Type[lamp]{Name: "lamps", Handlers: Handlers[lamp]{
		"turn":  onTurn(),
		"level": On(func(_ *Context, _ *lamp, _ int) error { return nil }),
	}}.Spec()
	require.NoError(t, err)
	for _, c := range []struct {
		name, body string
		want       error
	}{
		{"turn", `{"On":true}`, nil},
		{"turn", ``, nil},
		{"turn", `{"On":1}`, ErrMalformed},
		{"turn", `{"On":true`, ErrMalformed},
		{"turn", `{"On":true} {}`, ErrMalformed},
		{"turn", `null`, ErrMalformed},
		{"turn", `{"Off":true}`, ErrUnknownField},
		{"level", `7`, nil},
		{"level", ``, ErrMalformed},
		{"level", `"7"`, ErrMalformed},
		{"level", `99999999999999999999`, ErrMalformed},
		{"glow", `{}`, ErrUnknownMessage},
	} {
		_, err := spec.Parse(c.name, []byte(c.body))
		require.ErrorIs(t, err, c.want, "%s %s", c.name, c.body)
	}
}
