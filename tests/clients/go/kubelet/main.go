// As much of a kubelet as a device plugin needs: takes registrations, watches the devices, allocates.
//
//	kubelet DIRECTORY
//
// It serves kubelet.sock in DIRECTORY, where plugins have their sockets, and says on standard output what happens:
//
//	registered RESOURCE ENDPOINT
//	device RESOURCE ID HEALTH NUMA-NODES     for each device of a list, `-` without a node
//	listed RESOURCE COUNT                    the list is whole
//	lost RESOURCE                            its plugin is gone
//
// Commands come on standard input; the answer to one ends with `done` or `refused SENTENCE`:
//
//	allocate RESOURCE ID…       env NAME=VALUE, node HOST CONTAINER PERMISSIONS, mount HOST CONTAINER,
//	                            annotation NAME=VALUE, cdi NAME
//	prefer RESOURCE COUNT       preferred ID…    of all healthy ones
//
// It ends with its standard input.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type kubelet struct {
	api.UnimplementedRegistrationServer
	directory string

	mutex   sync.Mutex // of what follows, and of standard output
	plugins map[string]api.DevicePluginClient
	devices map[string][]*api.Device
}

func (k *kubelet) Register(_ context.Context, r *api.RegisterRequest) (*api.Empty, error) {
	if r.Version != api.Version {
		return nil, fmt.Errorf("%s is not %s", r.Version, api.Version)
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(k.directory, r.Endpoint),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	plugin := api.NewDevicePluginClient(conn)
	k.mutex.Lock()
	k.plugins[r.ResourceName] = plugin
	fmt.Println("registered", r.ResourceName, r.Endpoint)
	k.mutex.Unlock()
	go k.watch(r.ResourceName, plugin)
	return &api.Empty{}, nil
}

func (k *kubelet) watch(resource string, plugin api.DevicePluginClient) {
	stream, err := plugin.ListAndWatch(context.Background(), &api.Empty{})
	for err == nil {
		var list *api.ListAndWatchResponse
		if list, err = stream.Recv(); err == nil {
			k.list(resource, list.Devices)
		}
	}
	k.mutex.Lock()
	fmt.Println("lost", resource)
	k.mutex.Unlock()
}

func (k *kubelet) list(resource string, devices []*api.Device) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	sort.Slice(devices, func(i, j int) bool { return devices[i].ID < devices[j].ID })
	k.devices[resource] = devices
	for _, d := range devices {
		var nodes []string
		for _, n := range d.GetTopology().GetNodes() {
			nodes = append(nodes, strconv.FormatInt(n.ID, 10))
		}
		if nodes == nil {
			nodes = []string{"-"}
		}
		fmt.Println("device", resource, d.ID, d.Health, strings.Join(nodes, ","))
	}
	fmt.Println("listed", resource, len(devices))
}

func (k *kubelet) allocate(plugin api.DevicePluginClient, ids []string) error {
	answer, err := plugin.Allocate(context.Background(), &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err != nil {
		return err
	}
	for _, c := range answer.ContainerResponses {
		for name, value := range c.Envs {
			fmt.Printf("env %s=%s\n", name, value)
		}
		for _, d := range c.Devices {
			fmt.Println("node", d.HostPath, d.ContainerPath, d.Permissions)
		}
		for _, m := range c.Mounts {
			fmt.Println("mount", m.HostPath, m.ContainerPath)
		}
		for name, value := range c.Annotations {
			fmt.Printf("annotation %s=%s\n", name, value)
		}
		for _, d := range c.CdiDevices {
			fmt.Println("cdi", d.Name)
		}
	}
	return nil
}

func (k *kubelet) prefer(plugin api.DevicePluginClient, resource, count string) error {
	var healthy []string
	for _, d := range k.devices[resource] {
		if d.Health == api.Healthy {
			healthy = append(healthy, d.ID)
		}
	}
	size, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	answer, err := plugin.GetPreferredAllocation(context.Background(), &api.PreferredAllocationRequest{
		ContainerRequests: []*api.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: healthy, AllocationSize: int32(size)}}})
	if err != nil {
		return err
	}
	for _, c := range answer.ContainerResponses {
		fmt.Println("preferred", strings.Join(c.DeviceIDs, " "))
	}
	return nil
}

func (k *kubelet) command(words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("a command has a verb, a resource and arguments")
	}
	plugin, known := k.plugins[words[1]]
	if !known {
		return fmt.Errorf("nobody has registered %s", words[1])
	}
	switch words[0] {
	case "allocate":
		return k.allocate(plugin, words[2:])
	case "prefer":
		return k.prefer(plugin, words[1], words[2])
	}
	return fmt.Errorf("'%s' is neither allocate nor prefer", words[0])
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kubelet DIRECTORY")
		os.Exit(64)
	}
	k := &kubelet{
		directory: os.Args[1],
		plugins:   map[string]api.DevicePluginClient{},
		devices:   map[string][]*api.Device{},
	}
	listener, err := net.Listen("unix", filepath.Join(k.directory, "kubelet.sock"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer()
	api.RegisterRegistrationServer(server, k)
	go func() {
		fmt.Fprintln(os.Stderr, server.Serve(listener))
		os.Exit(1)
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		k.mutex.Lock()
		if err := k.command(strings.Fields(in.Text())); err != nil {
			fmt.Println("refused", err)
		} else {
			fmt.Println("done")
		}
		k.mutex.Unlock()
	}
}
