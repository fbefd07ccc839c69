// A store that one process serves over TCP to all others. The server is one thread over epoll and
// serves thousands of connections; a client keeps a few connections, so that a thread that waits
// for a key holds up no other.
#pragma once
#include <optional>

#include <torch/csrc/distributed/c10d/Store.h>

namespace c10d::engine {

struct TCPStoreOptions {
  uint16_t port = 29500; // 0: the server takes a free one
  bool is_server = false;
  std::optional<int64_t> world_size;
  bool wait_for_workers = true; // the server waits until world_size clients joined
  Millis timeout = Store::kDefaultTimeout;
  bool multi_tenant = false;    // servers of one process on one port are one server
  std::optional<int> listen_fd; // a bound socket to serve on, which the server owns from now on
  bool use_libuv = true;        // kept for programs that ask what they asked for; one server
};

class TCPStoreServer;

class TORCH_API TCPStore final : public Store {
 public:
  TCPStore(std::string host, const TCPStoreOptions& options);
  ~TCPStore() override;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const Keys& keys) override;
  int64_t num_keys() override;
  void wait(const Keys& keys, Millis timeout) override;
  using Store::wait;
  Bytes compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  bool has_extended_api() const override { return true; }
  void append(const std::string& key, const Bytes& value) override;
  std::vector<Bytes> multi_get(const Keys& keys) override;
  void multi_set(const Keys& keys, const std::vector<Bytes>& values) override;
  Keys list_keys() override;
  void queue_push(const std::string& key, const Bytes& value) override;
  Bytes queue_pop(const std::string& key, bool block) override;
  int64_t queue_len(const std::string& key) override;
  std::shared_ptr<Store> clone() override;

  const std::string& host() const { return host_; }
  uint16_t port() const { return options_.port; }
  bool uses_libuv() const { return options_.use_libuv; }
  std::string repr();

 private:
  class Connection;
  // Sends a request and reads its reply, in the time of `wait` and some more. Throws.
  std::string ask(const std::string& request, Millis wait, const Keys& keys);
  std::unique_ptr<Connection> take_connection();
  void give_back(std::unique_ptr<Connection> connection);
  void join_workers();

  const std::string host_;
  TCPStoreOptions options_;
  std::shared_ptr<TCPStoreServer> server_;
  std::mutex mutex_; // guards idle_ and owner_
  std::vector<std::unique_ptr<Connection>> idle_;
  int owner_; // the process that made the idle connections
};

// The server alone.
class TORCH_API TCPStoreServer {
 public:
  static std::shared_ptr<TCPStoreServer> start(const TCPStoreOptions& options);
  ~TCPStoreServer();
  uint16_t port() const;

 private:
  class Loop;
  TCPStoreServer();
  std::unique_ptr<Loop> loop_;
};

} // namespace c10d::engine
