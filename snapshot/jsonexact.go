package snapshot

import (
	"reflect"
)

// dropInexact removes from a JSON tree the keys that name no field of t but
// differ from one in case alone. encoding/json would put them into that field,
// so that a removed field could come back as another one's value. It reports
// whether it removed any.
func (c *jsonCodec) dropInexact(t reflect.Type, tree any) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if marshalsToJSON(t) {
		return false
	}
	dropped := false
	switch tree := tree.(type) {
	case []any:
		if k := t.Kind(); k == reflect.Slice || k == reflect.Array {
			for _, v := range tree {
				dropped = c.dropInexact(t.Elem(), v) || dropped
			}
		}
	case map[string]any:
		switch t.Kind() {
		case reflect.Map:
			for _, v := range tree {
				dropped = c.dropInexact(t.Elem(), v) || dropped
			}
		case reflect.Struct:
			fields := c.fieldTypes(t)
			for name, v := range tree {
				if ft, ok := fields[name]; ok {
					dropped = c.dropInexact(ft, v) || dropped
				} else {
					delete(tree, name)
					dropped = true
				}
			}
		}
	}
	return dropped
}

// fieldTypes gives the types of t's fields by their names in JSON.
func (c *jsonCodec) fieldTypes(t reflect.Type) map[string]reflect.Type {
	if known, ok := c.fields.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	byName := map[string]reflect.Type{}
	fields, _ := structFields(t) // Check has told of what is refused
	for _, f := range fields {
		byName[f.name] = f.typ
	}
	c.fields.Store(t, byName)
	return byName
}
