// The server of TCPStore: one thread, non-blocking sockets, epoll. A request is looked at when it
// is whole; a client whose keys are missing is parked on the first of them until the key appears or
// its time has passed. What arrives is hostile until proven otherwise: lengths are checked before
// anything is kept, memory grows only with bytes that really came, and a connection that breaks the
// rules is closed without harm to others.
#include <torch/csrc/distributed/c10d/TCPStore.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <unordered_map>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/TcpWire.h>

namespace c10d::engine {

namespace {

using wire::Command;
using wire::Status;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxBuffered = int64_t{1} << 31; // of requests and replies of all connections
constexpr int64_t kMaxStored = int64_t{1} << 33;

struct Client {
  int fd = -1;
  bool is_valid = false;  // said the magic number
  bool is_broken = false; // to be closed
  bool wants_write = false;
  std::string in, out;
  size_t sent = 0; // of out
  // ---- while it waits
  std::optional<Command> parked;
  Keys keys;
  std::string parked_on;
  Clock::time_point deadline = Clock::time_point::max();
};

Keys owned(const std::vector<std::string_view>& views) { return Keys(views.begin(), views.end()); }

int listen_socket(uint16_t port) {
  int failure = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      failure = errno;
      continue;
    }
    const int yes = 1, no = 0;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_storage address{};
    socklen_t size = 0;
    if (family == AF_INET6) {
      ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
      auto& six = reinterpret_cast<sockaddr_in6&>(address);
      six.sin6_family = AF_INET6;
      six.sin6_port = htons(port);
      size = sizeof six;
    } else {
      auto& four = reinterpret_cast<sockaddr_in&>(address);
      four.sin_family = AF_INET;
      four.sin_port = htons(port);
      size = sizeof four;
    }
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd, 4096) == 0) {
      return fd;
    }
    failure = errno;
    ::close(fd);
    if (failure == EADDRINUSE) break;
  }
  throw DistNetworkError(c10::str(
      "The server socket has failed to listen on any local network address. port: ", int(port),
      ", code: ", -failure, ", message: ", std::strerror(failure)));
}

// Thousands of clients need as many descriptors: take what the system allows.
void allow_many_files() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= 16384) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

} // namespace

class TCPStoreServer::Loop {
 public:
  explicit Loop(const TCPStoreOptions& options)
      : listener_(options.listen_fd ? *options.listen_fd : listen_socket(options.port)),
        owner_(::getpid()) {
    if (options.listen_fd && ::listen(listener_, 4096) != 0) {
      throw DistNetworkError(c10::str("The server socket has failed to listen on descriptor ",
                                      listener_, ": ", std::strerror(errno)));
    }
    port_ = port_of(listener_);
    allow_many_files();
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    TORCH_CHECK(epoll_ >= 0 && wake_ >= 0, "TCPStore: no descriptors left for the server");
    watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
    watch(wake_, EPOLLIN, EPOLL_CTL_ADD);
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    // A forked child has the object, but not the thread.
    if (owner_ != ::getpid()) {
      thread_.detach();
    } else {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t put = ::write(wake_, &one, sizeof one);
      thread_.join();
    }
    for (const auto& [fd, client] : clients_) ::close(fd);
    for (const int fd : {listener_, epoll_, wake_}) ::close(fd);
  }

  uint16_t port() const { return port_; }

 private:
  void watch(int fd, uint32_t events, int how) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll_, how, fd, &event);
  }

  void run() {
    std::vector<epoll_event> events(256);
    for (;;) {
      const int count =
          ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), milliseconds_left());
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == wake_) return;
        if (events[i].data.fd == listener_) {
          accept_all();
        } else {
          serve(events[i].data.fd, events[i].events);
        }
      }
      expire();
      close_broken();
    }
  }

  // ---- connections
  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno == EMFILE || errno == ENFILE) pause_accepting();
        return;
      }
      const int yes = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      clients_[fd].fd = fd;
      watch(fd, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_ADD);
    }
  }

  // Without descriptors the listener would be reported for ever; a closing client resumes it.
  void pause_accepting() {
    watch(listener_, 0, EPOLL_CTL_MOD);
    is_paused_ = true;
  }

  void serve(int fd, uint32_t events) {
    const auto found = clients_.find(fd);
    if (found == clients_.end()) return;
    Client& client = found->second;
    if (events & (EPOLLERR | EPOLLHUP)) return break_off(client);
    if (events & EPOLLOUT) flush(client);
    if (events & EPOLLIN) read(client);
    // A client that left while it was parked will never read its reply.
    if ((events & EPOLLRDHUP) && client.parked) break_off(client);
  }

  void break_off(Client& client) {
    if (client.is_broken) return;
    client.is_broken = true;
    broken_.push_back(client.fd);
  }

  void close_broken() {
    for (const int fd : broken_) {
      Client& client = clients_[fd];
      unpark(client);
      buffered_ -= static_cast<int64_t>(client.in.size() + client.out.size());
      ::close(fd);
      clients_.erase(fd);
    }
    if (is_paused_ && !broken_.empty()) {
      is_paused_ = false;
      watch(listener_, EPOLLIN, EPOLL_CTL_MOD);
    }
    broken_.clear();
  }

  void read(Client& client) {
    char chunk[65536];
    // One share per turn, so that a busy client does not keep the others waiting.
    for (int turn = 0; turn < 64 && !client.is_broken; ++turn) {
      const ssize_t got = ::recv(client.fd, chunk, sizeof chunk, 0);
      if (got == 0) return break_off(client);
      if (got < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) break_off(client);
        break;
      }
      client.in.append(chunk, static_cast<size_t>(got));
      buffered_ += got;
      if (client.in.size() > wire::kMaxRequest || buffered_ > kMaxBuffered) {
        return break_off(client);
      }
      if (static_cast<size_t>(got) < sizeof chunk) break;
    }
    handle_all(client);
  }

  // Requests that are whole, until one has to wait.
  void handle_all(Client& client) {
    size_t used = 0;
    while (!client.is_broken && !client.parked && used < client.in.size()) {
      wire::Reader reader(std::string_view(client.in).substr(used));
      const auto command = static_cast<Command>(reader.take(1)[0]);
      if (client.is_valid) {
        handle(client, command, reader);
      } else {
        validate(client, command, reader);
      }
      if (reader.is_bad()) break_off(client);
      if (reader.is_short()) break;
      used += reader.position();
    }
    client.in.erase(0, used);
    buffered_ -= static_cast<int64_t>(used);
    if (client.in.empty() && client.in.capacity() > (1 << 20)) client.in.shrink_to_fit();
    if (!client.is_broken) flush(client);
    update_interest(client);
  }

  // A parked client is not read from: its requests wait in its socket.
  void update_interest(Client& client) {
    if (client.is_broken) return;
    watch(client.fd,
          (client.parked ? 0u : unsigned(EPOLLIN)) | EPOLLRDHUP |
              (client.wants_write ? unsigned(EPOLLOUT) : 0u),
          EPOLL_CTL_MOD);
  }

  void flush(Client& client) {
    while (client.sent < client.out.size()) {
      const ssize_t put = ::send(client.fd, client.out.data() + client.sent,
                                 client.out.size() - client.sent, MSG_NOSIGNAL);
      if (put < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) break_off(client);
        break;
      }
      client.sent += static_cast<size_t>(put);
    }
    if (client.sent == client.out.size()) {
      buffered_ -= static_cast<int64_t>(client.out.size());
      client.out.clear();
      client.sent = 0;
    }
    const bool wants = !client.out.empty();
    if (wants != client.wants_write) {
      client.wants_write = wants;
      update_interest(client);
    }
  }

  // ---- requests
  void validate(Client& client, Command command, wire::Reader& reader) {
    uint32_t magic = 0;
    if (command != Command::Validate) return break_off(client);
    const auto bytes = reader.take(sizeof magic);
    if (reader.is_short()) return;
    std::memcpy(&magic, bytes.data(), sizeof magic);
    if (magic != wire::kMagic) return break_off(client);
    client.is_valid = true;
  }

  void reply(Client& client, Status status, const std::string& body = {}) {
    client.out += static_cast<char>(status);
    client.out += body;
    buffered_ += static_cast<int64_t>(body.size()) + 1;
    if (buffered_ > kMaxBuffered) break_off(client);
  }
  void reply_number(Client& client, int64_t value) {
    std::string body;
    wire::put_number(body, value);
    reply(client, Status::Ok, body);
  }
  void reply_text(Client& client, Status status, std::string_view text) {
    std::string body;
    wire::put_text(body, text);
    reply(client, status, body);
  }

  void handle(Client& client, Command command, wire::Reader& in) {
    switch (command) {
    case Command::Set:
    case Command::Append:
    case Command::QueuePush:
      return write_value(client, command, in);
    case Command::CompareSet:
      return compare_set(client, in);
    case Command::Add:
      return add(client, in);
    case Command::MultiSet:
      return multi_set(client, in);
    case Command::Get:
    case Command::QueuePop: {
      const int64_t timeout = in.number();
      const std::string key(in.text(wire::kMaxKey));
      if (in.is_whole()) wait_or_finish(client, command, {key}, timeout);
      return;
    }
    case Command::Wait:
    case Command::MultiGet: {
      const int64_t timeout = in.number();
      const auto keys = in.texts(wire::kMaxKey);
      if (in.is_whole()) wait_or_finish(client, command, owned(keys), timeout);
      return;
    }
    case Command::Ping: {
      const auto number = in.take(4);
      if (in.is_whole()) client.out.append(number), buffered_ += 4;
      return;
    }
    default:
      return query(client, command, in);
    }
  }

  void query(Client& client, Command command, wire::Reader& in) {
    if (command == Command::Check) {
      const auto keys = in.texts(wire::kMaxKey);
      if (in.is_whole()) reply_number(client, table_.contains_all(owned(keys)));
    } else if (command == Command::NumKeys) {
      reply_number(client, table_.size());
    } else if (command == Command::DeleteKey || command == Command::QueueLen) {
      const std::string key(in.text(wire::kMaxKey));
      if (!in.is_whole()) return;
      reply_number(client, command == Command::QueueLen ? table_.queue_len(key)
                                                        : int64_t{table_.erase(key)});
    } else if (command == Command::ListKeys) {
      std::string body;
      wire::put_texts(body, table_.keys());
      reply(client, Status::Ok, body);
    } else {
      break_off(client);
    }
  }

  bool has_room(Client& client, size_t more) {
    if (table_.bytes() + static_cast<int64_t>(more) <= kMaxStored) return true;
    reply_text(client, Status::Error, "TCPStore: the store is full");
    return false;
  }

  void write_value(Client& client, Command command, wire::Reader& in) {
    const std::string key(in.text(wire::kMaxKey));
    const auto value = in.text(wire::kMaxValue);
    if (!in.is_whole() || !has_room(client, key.size() + value.size())) return;
    if (command == Command::Set) {
      table_.set(key, Bytes(value));
    } else if (command == Command::Append) {
      table_.append(key, Bytes(value));
    } else {
      table_.push(key, Bytes(value));
    }
    reply(client, Status::Ok);
    wake(key);
  }

  void compare_set(Client& client, wire::Reader& in) {
    const std::string key(in.text(wire::kMaxKey));
    const auto expected = in.text(wire::kMaxValue), desired = in.text(wire::kMaxValue);
    if (!in.is_whole() || !has_room(client, key.size() + desired.size())) return;
    reply_text(client, Status::Ok, table_.compare_set(key, Bytes(expected), Bytes(desired)));
    if (table_.contains(key)) wake(key);
  }

  void add(Client& client, wire::Reader& in) {
    const std::string key(in.text(wire::kMaxKey));
    const int64_t amount = in.number();
    if (!in.is_whole() || !has_room(client, key.size() + 20)) return;
    try {
      reply_number(client, table_.add(key, amount));
    } catch (const c10::ValueError& error) {
      return reply_text(client, Status::Error, error.what());
    }
    wake(key);
  }

  void multi_set(Client& client, wire::Reader& in) {
    const auto keys = in.texts(wire::kMaxKey), values = in.texts(wire::kMaxValue);
    if (!in.is_whole()) return;
    if (keys.size() != values.size()) return break_off(client);
    if (!has_room(client, in.position())) return;
    for (size_t i = 0; i < keys.size(); ++i) table_.set(std::string(keys[i]), Bytes(values[i]));
    reply(client, Status::Ok);
    for (const auto& key : keys) wake(std::string(key));
  }

  // ---- waiting
  const std::string* first_missing(const Keys& keys) const {
    for (const auto& key : keys) {
      if (!table_.contains(key)) return &key;
    }
    return nullptr;
  }

  void wait_or_finish(Client& client, Command command, Keys keys, int64_t timeout) {
    const std::string* missing = first_missing(keys);
    if (!missing) return finish(client, command, keys);
    if (timeout == 0) return reply(client, Status::TimedOut);
    client.parked = command;
    client.keys = std::move(keys);
    // More than a year is for ever.
    client.deadline = timeout < 0 || timeout > (int64_t{1} << 35) ? Clock::time_point::max()
                                                                  : Clock::now() + Millis(timeout);
    if (client.deadline != Clock::time_point::max()) {
      deadlines_.emplace(client.deadline, client.fd);
    }
    park_on(client, *first_missing(client.keys));
  }

  void park_on(Client& client, const std::string& key) {
    client.parked_on = key;
    waiters_[key].push_back(client.fd);
  }

  void unpark(Client& client) {
    if (!client.parked) return;
    client.parked.reset();
    if (const auto found = waiters_.find(client.parked_on); found != waiters_.end()) {
      auto& list = found->second;
      list.erase(std::remove(list.begin(), list.end(), client.fd), list.end());
      if (list.empty()) waiters_.erase(found);
    }
    auto [from, to] = deadlines_.equal_range(client.deadline);
    for (; from != to; ++from) {
      if (from->second == client.fd) {
        deadlines_.erase(from);
        break;
      }
    }
  }

  // All keys are there.
  void finish(Client& client, Command command, const Keys& keys) {
    Bytes taken;
    switch (command) {
    case Command::Get: {
      const Bytes* value = table_.find(keys[0]);
      if (value) return reply_text(client, Status::Ok, *value);
      return reply_text(client, Status::Error, "Store.get: key '" + keys[0] + "' is a queue");
    }
    case Command::MultiGet: {
      std::string body;
      wire::put_number(body, static_cast<int64_t>(keys.size()));
      for (const auto& key : keys) {
        const Bytes* value = table_.find(key);
        wire::put_text(body, value ? *value : Bytes());
      }
      return reply(client, Status::Ok, body);
    }
    case Command::QueuePop:
      if (table_.pop(keys[0], taken)) return reply_text(client, Status::Ok, taken);
      return reply_text(client, Status::Error,
                        "Store.queue_pop: key '" + keys[0] + "' is no queue");
    default:
      return reply(client, Status::Ok);
    }
  }

  // A key appeared: those parked on it go on, to their next missing key or to their reply.
  void wake(const std::string& key) {
    const auto found = waiters_.find(key);
    if (found == waiters_.end()) return;
    std::vector<int> woken = std::move(found->second);
    waiters_.erase(found);
    for (const int fd : woken) {
      const auto entry = clients_.find(fd);
      if (entry == clients_.end() || entry->second.is_broken) continue;
      Client& client = entry->second;
      if (const std::string* missing = first_missing(client.keys)) {
        park_on(client, *missing);
        continue;
      }
      const Command command = *client.parked;
      unpark(client);
      finish(client, command, client.keys);
      client.keys.clear();
      resume(client);
    }
  }

  // Requests that came while the client was parked.
  void resume(Client& client) {
    flush(client);
    update_interest(client);
    if (!client.in.empty()) resumed_.push_back(client.fd);
  }

  int milliseconds_left() {
    if (!resumed_.empty()) return 0;
    if (deadlines_.empty()) return -1;
    const auto left = deadlines_.begin()->first - Clock::now();
    const auto rounded = std::chrono::ceil<Millis>(left).count();
    return static_cast<int>(std::clamp<int64_t>(rounded, 0, 1 << 30));
  }

  void expire() {
    while (!deadlines_.empty() && deadlines_.begin()->first <= Clock::now()) {
      Client& client = clients_[deadlines_.begin()->second];
      unpark(client);
      client.keys.clear();
      reply(client, Status::TimedOut);
      resume(client);
    }
    for (const int fd : std::exchange(resumed_, {})) {
      if (const auto found = clients_.find(fd); found != clients_.end()) handle_all(found->second);
    }
  }

  const int listener_;
  const int owner_;
  uint16_t port_ = 0;
  int epoll_ = -1, wake_ = -1;
  bool is_paused_ = false;
  int64_t buffered_ = 0;
  StoreTable table_;
  std::unordered_map<int, Client> clients_; // by descriptor
  std::unordered_map<std::string, std::vector<int>> waiters_;
  std::multimap<Clock::time_point, int> deadlines_;
  std::vector<int> broken_, resumed_;
  std::thread thread_;
};

TCPStoreServer::TCPStoreServer() = default;
TCPStoreServer::~TCPStoreServer() = default;
uint16_t TCPStoreServer::port() const { return loop_->port(); }

std::shared_ptr<TCPStoreServer> TCPStoreServer::start(const TCPStoreOptions& options) {
  static std::mutex mutex;
  static auto* shared = new std::unordered_map<uint16_t, std::weak_ptr<TCPStoreServer>>;
  std::lock_guard lock(mutex);
  if (options.multi_tenant && options.port != 0) {
    if (auto known = (*shared)[options.port].lock()) return known;
  }
  std::shared_ptr<TCPStoreServer> server(new TCPStoreServer);
  server->loop_ = std::make_unique<Loop>(options);
  if (options.multi_tenant) (*shared)[server->port()] = server;
  return server;
}

} // namespace c10d::engine
