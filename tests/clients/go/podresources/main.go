// The kubelet's pod-resources interface, from Kubernetes' own package: podresources SOCKET
//
// What it answers comes on standard input, one list a line; "ok" is its reply when that is in force. A list is the
// JSON of ListPodResourcesResponse, as encoding/json takes it:
//
//	{"pod_resources": [{"name": "train-0", "namespace": "default", "containers": [{"name": "main",
//	  "devices": [{"resource_name": "nvidia.com/gpu", "device_ids": ["GPU-…"]}]}]}]}
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	lock sync.Mutex
	now  *podresources.ListPodResourcesResponse
}

func (k *kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	return k.now, nil
}

func (k *kubelet) set(line []byte) error {
	next := &podresources.ListPodResourcesResponse{}
	if err := json.Unmarshal(line, next); err != nil {
		return err
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	k.now = next
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: podresources SOCKET")
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	k := &kubelet{now: &podresources.ListPodResourcesResponse{}}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, k)
	go func() { log.Fatal(server.Serve(listener)) }()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if err := k.set(lines.Bytes()); err != nil {
			fmt.Println("wrong:", err)
			continue
		}
		fmt.Println("ok")
	}
}
