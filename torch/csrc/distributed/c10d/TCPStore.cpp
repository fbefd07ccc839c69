// The client of TCPStore. A request takes an idle connection or makes a new one, so that several
// threads can wait at once; connections that a forked child inherited are its parent's, and it
// makes its own.
#include <torch/csrc/distributed/c10d/TCPStore.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ATen/parallel/Parallel.h>
#include <torch/csrc/distributed/c10d/TcpWire.h>

namespace c10d::engine {

using wire::Command;
using wire::Status;
using Clock = std::chrono::steady_clock;

namespace {

// The key that counts the clients that joined; keys of users begin with a slash.
constexpr char kJoined[] = "init/";
constexpr size_t kMaxIdle = 4;
// How long after its own deadline a server may reply before it counts as hung.
constexpr Millis kGrace = std::chrono::seconds(30);

std::string request(Command command) { return std::string(1, static_cast<char>(command)); }

std::string slashed(const std::string& key) { return "/" + key; }
Keys slashed(const Keys& keys) {
  Keys out;
  for (const auto& key : keys) out.push_back("/" + key);
  return out;
}

// Waits for the socket; false when the time passed. Ctrl-C raises.
bool ready(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(deadline - Clock::now());
    if (left <= Millis::zero()) return false;
    pollfd entry{fd, events, 0};
    const int count = ::poll(&entry, 1, static_cast<int>(std::min(left, Millis(100)).count()));
    if (count > 0) return true;
    at::check_interrupt();
  }
}

Clock::time_point deadline_after(Millis time) {
  // Beyond a year it is the same.
  return Clock::now() + (time < Millis::zero() ? std::chrono::hours(24 * 365)
                                               : std::min<Millis>(time, std::chrono::hours(8760)));
}

std::string name_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                    sizeof port, NI_NUMERICSERV) != 0) {
    return "?";
  }
  return c10::str("[", host, "]:", port);
}

} // namespace

// How long a port that refuses is asked again where a server was: it will hardly come back, and not
// with what it knew. A job whose server has ended must end too.
constexpr Millis kPatienceAfterLoss{1000};
// For so long a server looks every millisecond whether all clients have come.
constexpr Millis kMeeting{200};

class TCPStore::Connection {
 public:
  // Throws DistNetworkError when nobody listens there until the time has passed; at once where a
  // server `was_there` and its port refuses.
  Connection(const std::string& host, uint16_t port, Millis timeout, bool was_there)
      : where_(c10::str(host, ":", int(port))) {
    const auto start = Clock::now(), deadline = deadline_after(timeout);
    std::string why = "no address";
    for (auto pause = Millis(1);; pause = std::min(pause * 2, Millis(500))) {
      if (attempt(host, port, deadline, why)) break;
      if (was_there && why == std::strerror(ECONNREFUSED) &&
          Clock::now() >= start + kPatienceAfterLoss)
        throw DistNetworkError(c10::str("TCPStore: the server at ", where_, " is gone: ", why));
      if (Clock::now() + pause >= deadline) {
        throw DistNetworkError(c10::str("The client socket has timed out after ", timeout.count(),
                                        "ms while trying to connect to (", host, ", ", int(port),
                                        "): ", why));
      }
      std::this_thread::sleep_for(pause);
      at::check_interrupt();
    }
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(const std::string& bytes, Clock::time_point deadline) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t put = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (put >= 0) {
        done += static_cast<size_t>(put);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (!ready(fd_, POLLOUT, deadline)) lost("did not take a request in time");
      } else if (errno != EINTR) {
        lost(std::strerror(errno));
      }
    }
  }

  void receive(void* to, size_t size, Clock::time_point deadline) {
    auto* out = static_cast<char*>(to);
    while (size > 0) {
      const ssize_t got = ::recv(fd_, out, size, 0);
      if (got > 0) {
        out += got;
        size -= static_cast<size_t>(got);
      } else if (got == 0) {
        lost("closed the connection");
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (!ready(fd_, POLLIN, deadline)) lost("did not reply in time");
      } else if (errno != EINTR) {
        lost(std::strerror(errno));
      }
    }
  }

  std::string repr() const {
    sockaddr_storage mine{}, theirs{};
    socklen_t mine_size = sizeof mine, their_size = sizeof theirs;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&mine), &mine_size);
    ::getpeername(fd_, reinterpret_cast<sockaddr*>(&theirs), &their_size);
    return c10::str("TCPClient(SocketImpl(fd=", fd_, ", addr=", name_of(mine, mine_size),
                    ", remote=", name_of(theirs, their_size), "))");
  }

 private:
  [[noreturn]] void lost(const char* why) {
    throw DistNetworkError(c10::str("TCPStore: the server at ", where_, " ", why));
  }

  bool attempt(const std::string& host, uint16_t port, Clock::time_point deadline,
               std::string& why) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (code != 0) {
      why = ::gai_strerror(code);
      return false;
    }
    bool connected = false;
    for (const addrinfo* one = found; one && !connected; one = one->ai_next) {
      connected = connect_to(*one, deadline, why);
    }
    ::freeaddrinfo(found);
    return connected;
  }

  bool connect_to(const addrinfo& address, Clock::time_point deadline, std::string& why) {
    fd_ = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
      why = std::strerror(errno);
      return false;
    }
    int error = 0;
    if (::connect(fd_, address.ai_addr, address.ai_addrlen) != 0) {
      error = errno;
      if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        error = ETIMEDOUT;
        if (ready(fd_, POLLOUT, deadline)) ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
    if (error == 0 && greet(deadline, why)) return true;
    if (error != 0) why = std::strerror(error);
    ::close(std::exchange(fd_, -1));
    return false;
  }

  // Tells a store's server from whatever else may listen there, and a live one from a dying one.
  bool greet(Clock::time_point deadline, std::string& why) {
    const int yes = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    const int32_t mine = ::getpid();
    std::string hello = request(Command::Validate);
    hello.append(reinterpret_cast<const char*>(&wire::kMagic), sizeof wire::kMagic);
    hello += request(Command::Ping);
    hello.append(reinterpret_cast<const char*>(&mine), sizeof mine);
    try {
      int32_t back = 0;
      send(hello, deadline);
      receive(&back, sizeof back, deadline);
      if (back == mine) return true;
      why = "not a store's server";
    } catch (const DistNetworkError& error) {
      why = error.what();
    }
    return false;
  }

  const std::string where_;
  int fd_ = -1;
};

TCPStore::TCPStore(std::string host, const TCPStoreOptions& options)
    : Store(options.timeout), host_(std::move(host)), options_(options), owner_(::getpid()) {
  TORCH_CHECK_VALUE(!options.world_size || *options.world_size != 0,
                    "TCPStore world size cannot be 0");
  if (options.is_server) {
    server_ = TCPStoreServer::start(options);
    options_.port = server_->port();
  }
  idle_.push_back(std::make_unique<Connection>(host_, options_.port, timeout(), false));
  if (options_.world_size || options_.is_server) join_workers();
}

TCPStore::~TCPStore() = default;

void TCPStore::join_workers() {
  const auto count = [this](int64_t amount) {
    std::string message = request(Command::Add);
    wire::put_text(message, kJoined);
    wire::put_number(message, amount);
    const std::string reply = ask(message, timeout(), {});
    return wire::Reader(reply).number();
  };
  int64_t joined = count(1);
  if (!options_.is_server || !options_.wait_for_workers || !options_.world_size) return;
  const int64_t size = *options_.world_size;
  const auto deadline = deadline_after(timeout());
  // Clients that start together come within moments; the others may take minutes.
  const auto impatient = deadline_after(kMeeting);
  while (joined < size) {
    if (Clock::now() >= deadline) {
      throw DistStoreError(c10::str(
          "Timed out after ", std::chrono::duration_cast<std::chrono::seconds>(timeout()).count(),
          " seconds waiting for clients. ", joined, "/", size, " clients joined."));
    }
    std::this_thread::sleep_for(Clock::now() < impatient ? Millis(1) : Millis(20));
    at::check_interrupt();
    joined = count(0);
  }
}

std::unique_ptr<TCPStore::Connection> TCPStore::take_connection() {
  {
    std::lock_guard lock(mutex_);
    if (owner_ != ::getpid()) {
      idle_.clear();
      owner_ = ::getpid();
    }
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<Connection>(host_, options_.port, timeout(), true);
}

void TCPStore::give_back(std::unique_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
}

namespace {
// What comes after the status of a reply, by command.
enum class Body { Nothing, Number, Text, Texts };
Body body_of(Command command) {
  switch (command) {
  case Command::Add:
  case Command::Check:
  case Command::NumKeys:
  case Command::DeleteKey:
  case Command::QueueLen:
    return Body::Number;
  case Command::Get:
  case Command::CompareSet:
  case Command::QueuePop:
    return Body::Text;
  case Command::MultiGet:
  case Command::ListKeys:
    return Body::Texts;
  default:
    return Body::Nothing;
  }
}
} // namespace

std::string TCPStore::ask(const std::string& message, Millis wait, const Keys& keys) {
  auto connection = take_connection();
  const auto deadline =
      wait < Millis::zero() ? deadline_after(wait) : deadline_after(wait + kGrace);
  connection->send(message, deadline);
  char status = 0;
  connection->receive(&status, 1, deadline);
  std::string body;
  const auto read_some = [&](size_t size) {
    const size_t at = body.size();
    body.resize(at + size);
    connection->receive(body.data() + at, size, deadline);
  };
  const auto read_number = [&] {
    read_some(sizeof(int64_t));
    int64_t value = 0;
    std::memcpy(&value, body.data() + body.size() - sizeof value, sizeof value);
    return value;
  };
  const bool ok = static_cast<Status>(status) == Status::Ok;
  const bool timed_out = static_cast<Status>(status) == Status::TimedOut;
  const Body kind = ok ? body_of(static_cast<Command>(message[0])) : Body::Text;
  if (timed_out) {
    give_back(std::move(connection));
    throw DistStoreError("wait timeout " + timeout_text(wait, keys));
  }
  if (kind == Body::Number) {
    read_number();
  } else if (kind == Body::Text) {
    read_some(static_cast<size_t>(read_number()));
  } else if (kind == Body::Texts) {
    for (int64_t left = read_number(); left > 0; --left) {
      read_some(static_cast<size_t>(read_number()));
    }
  }
  give_back(std::move(connection));
  TORCH_CHECK(ok, wire::Reader(body).text(wire::kMaxRequest));
  return body;
}

namespace {
Bytes text_in(const std::string& body) { return Bytes(wire::Reader(body).text(wire::kMaxRequest)); }
int64_t number_of(const std::string& body) { return wire::Reader(body).number(); }
std::vector<Bytes> texts_in(const std::string& body) {
  wire::Reader reader(body);
  std::vector<Bytes> out;
  for (int64_t left = reader.number(); left > 0; --left) {
    out.emplace_back(reader.text(wire::kMaxRequest));
  }
  return out;
}
void check_sizes(const char* call, const std::string& key, size_t value) {
  TORCH_CHECK_VALUE(key.size() < wire::kMaxKey, "TCPStore.", call, ": a key of ", key.size(),
                    " bytes is too long; at most ", wire::kMaxKey);
  TORCH_CHECK_VALUE(value <= wire::kMaxValue, "TCPStore.", call, ": a value of ", value,
                    " bytes is too long; at most ", wire::kMaxValue);
}
} // namespace

void TCPStore::set(const std::string& key, const Bytes& value) {
  check_sizes("set", key, value.size());
  std::string message = request(Command::Set);
  wire::put_text(message, slashed(key));
  wire::put_text(message, value);
  ask(message, timeout(), {});
}

Bytes TCPStore::get(const std::string& key) {
  check_sizes("get", key, 0);
  std::string message = request(Command::Get);
  wire::put_number(message, timeout().count());
  wire::put_text(message, slashed(key));
  return text_in(ask(message, timeout(), {slashed(key)}));
}

int64_t TCPStore::add(const std::string& key, int64_t amount) {
  check_sizes("add", key, 0);
  std::string message = request(Command::Add);
  wire::put_text(message, slashed(key));
  wire::put_number(message, amount);
  return number_of(ask(message, timeout(), {}));
}

bool TCPStore::delete_key(const std::string& key) {
  check_sizes("delete_key", key, 0);
  std::string message = request(Command::DeleteKey);
  wire::put_text(message, slashed(key));
  return number_of(ask(message, timeout(), {})) != 0;
}

bool TCPStore::check(const Keys& keys) {
  std::string message = request(Command::Check);
  wire::put_texts(message, slashed(keys));
  return number_of(ask(message, timeout(), {})) != 0;
}

int64_t TCPStore::num_keys() { return number_of(ask(request(Command::NumKeys), timeout(), {})); }

void TCPStore::wait(const Keys& keys, Millis timeout) {
  std::string message = request(Command::Wait);
  wire::put_number(message, timeout.count());
  wire::put_texts(message, slashed(keys));
  ask(message, timeout, slashed(keys));
}

Bytes TCPStore::compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) {
  check_sizes("compare_set", key, std::max(expected.size(), desired.size()));
  std::string message = request(Command::CompareSet);
  wire::put_text(message, slashed(key));
  wire::put_text(message, expected);
  wire::put_text(message, desired);
  return text_in(ask(message, timeout(), {}));
}

void TCPStore::append(const std::string& key, const Bytes& value) {
  check_sizes("append", key, value.size());
  std::string message = request(Command::Append);
  wire::put_text(message, slashed(key));
  wire::put_text(message, value);
  ask(message, timeout(), {});
}

std::vector<Bytes> TCPStore::multi_get(const Keys& keys) {
  std::string message = request(Command::MultiGet);
  wire::put_number(message, timeout().count());
  wire::put_texts(message, slashed(keys));
  return texts_in(ask(message, timeout(), slashed(keys)));
}

void TCPStore::multi_set(const Keys& keys, const std::vector<Bytes>& values) {
  TORCH_CHECK_VALUE(keys.size() == values.size(),
                    "multi_set keys and values must be of the same "
                    "size: ",
                    keys.size(), " keys and ", values.size(), " values");
  for (size_t i = 0; i < keys.size(); ++i) check_sizes("multi_set", keys[i], values[i].size());
  std::string message = request(Command::MultiSet);
  wire::put_texts(message, slashed(keys));
  wire::put_texts(message, values);
  ask(message, timeout(), {});
}

Keys TCPStore::list_keys() {
  Keys keys;
  for (auto& key : texts_in(ask(request(Command::ListKeys), timeout(), {}))) {
    if (key[0] == '/') keys.push_back(key.substr(1));
  }
  return keys;
}

void TCPStore::queue_push(const std::string& key, const Bytes& value) {
  check_sizes("queue_push", key, value.size());
  std::string message = request(Command::QueuePush);
  wire::put_text(message, slashed(key));
  wire::put_text(message, value);
  ask(message, timeout(), {});
}

Bytes TCPStore::queue_pop(const std::string& key, bool block) {
  const Millis wait = block ? timeout() : Millis::zero();
  std::string message = request(Command::QueuePop);
  wire::put_number(message, wait.count());
  wire::put_text(message, slashed(key));
  try {
    return text_in(ask(message, wait, {slashed(key)}));
  } catch (const DistStoreError&) {
    if (block) throw;
    throw DistQueueEmptyError("queue is empty: key '" + key + "'");
  }
}

int64_t TCPStore::queue_len(const std::string& key) {
  std::string message = request(Command::QueueLen);
  wire::put_text(message, slashed(key));
  return number_of(ask(message, timeout(), {}));
}

std::shared_ptr<Store> TCPStore::clone() {
  TCPStoreOptions options = options_;
  options.is_server = false;
  options.world_size.reset();
  options.timeout = timeout();
  return std::make_shared<TCPStore>(host_, options);
}

std::string TCPStore::repr() {
  auto connection = take_connection();
  const std::string client = connection->repr();
  give_back(std::move(connection));
  return c10::str("TCPStore(client=", client, ", server=",
                  server_ ? c10::str("TCPServer(port=", int(port()), ")") : "<nullptr>", ")");
}

} // namespace c10d::engine
