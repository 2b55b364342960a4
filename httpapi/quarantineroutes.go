package httpapi

import (
	"net/http"
	"strings"

	"github.com/twinsrv/twinsrv/pod"
)

// QuarantineList is a page of the entities that cannot be read.
type QuarantineList struct {
	Items []QuarantinedLine `json:"items"`
	Next  string            `json:"next,omitempty"`
}

// listQuarantine pages by pod and name.
func listQuarantine(c *call) error {
	o, err := c.page()
	if err != nil {
		return err
	}
	list := QuarantineList{Items: []QuarantinedLine{}}
	for _, q := range c.api.pods.Quarantined() {
		switch {
		case !behind(q, o.After):
		case len(list.Items) == o.Limit:
			last := list.Items[o.Limit-1]
			list.Next = cursor(last.Pod + "/" + last.Name)
			return c.json(http.StatusOK, list)
		default:
			list.Items = append(list.Items, QuarantinedLine{Pod: q.Pod, Name: q.Name, Quarantined: q.Reason.Error()})
		}
	}
	return c.json(http.StatusOK, list)
}

// behind reports whether an entity comes behind pod/name in the order of the
// list, which is by pod and then by name. No pod has a slash in its name.
func behind(q pod.Quarantined, after string) bool {
	p, name, _ := strings.Cut(after, "/")
	return q.Pod > p || q.Pod == p && q.Name > name
}
