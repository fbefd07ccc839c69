// A library that stands for NCCL in tests: the same functions, on memory of the CPU, between
// processes of one machine over sockets. Every call leaves a line in a file, so that tests see the
// sequence. Calls within a group run at its end, sends and receives side by side, as NCCL's do.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct ncclComm {
  int rank, size;
  std::vector<int> sockets;
};
struct Id {
  char bytes[128];
};

namespace {

std::vector<std::function<void()>> queued;
struct Move {
  ncclComm* comm;
  int peer;
  char* at;
  size_t bytes;
  bool sends;
};
std::vector<Move> moves;
int depth = 0;
std::map<int, double> factors; // of reductions that scale first
int next_factor = 100;

template <class... T> void note(ncclComm* comm, const char* text, T... values) {
  const char* path = std::getenv("CRESSET_NCCL_LOG");
  if (!path) return;
  std::FILE* file = std::fopen((path + std::to_string(comm ? comm->rank : 0)).c_str(), "a");
  std::fprintf(file, text, values...);
  std::fputc('\n', file);
  std::fclose(file);
}

sockaddr_un address_of(const Id& id, int rank, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int used = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "nccl-%.60s-%d",
                                 id.bytes, rank);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + used);
  return address;
}

void put(int socket, const char* data, size_t bytes) {
  while (bytes) {
    const ssize_t done = ::send(socket, data, bytes, MSG_NOSIGNAL);
    if (done <= 0) return;
    data += done, bytes -= static_cast<size_t>(done);
  }
}
void take(int socket, char* data, size_t bytes) {
  while (bytes) {
    const ssize_t done = ::recv(socket, data, bytes, 0);
    if (done <= 0) return;
    data += done, bytes -= static_cast<size_t>(done);
  }
}

void run_moves(std::vector<Move> all) {
  std::vector<std::thread> senders;
  std::vector<std::string> to_self;
  for (const auto& m : all) {
    if (m.sends && m.peer == m.comm->rank) to_self.emplace_back(m.at, m.bytes);
  }
  senders.emplace_back([&all] {
    for (const auto& m : all) {
      if (m.sends && m.peer != m.comm->rank) put(m.comm->sockets[m.peer], m.at, m.bytes);
    }
  });
  size_t own = 0;
  for (const auto& m : all) {
    if (m.sends) continue;
    if (m.peer == m.comm->rank) {
      std::memcpy(m.at, to_self[own++].data(), m.bytes);
    } else {
      take(m.comm->sockets[m.peer], m.at, m.bytes);
    }
  }
  for (auto& sender : senders) sender.join();
}

int run(std::function<void()> what) {
  if (depth) {
    queued.push_back(std::move(what));
  } else {
    what();
  }
  return 0;
}

// What every rank sends, by rank.
std::vector<std::string> gathered(ncclComm* comm, const void* data, size_t bytes) {
  std::vector<std::string> all(comm->size, std::string(bytes, 0));
  std::string mine(static_cast<const char*>(data), bytes);
  std::vector<Move> both;
  for (int peer = 0; peer < comm->size; ++peer) {
    both.push_back({comm, peer, mine.data(), bytes, true});
    both.push_back({comm, peer, all[peer].data(), bytes, false});
  }
  run_moves(both);
  return all;
}

size_t size_of(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

template <class T>
void fold(char* out, const std::vector<std::string>& parts, size_t count, int op) {
  for (size_t i = 0; i < count; ++i) {
    const auto value = [&](size_t rank) {
      T one;
      std::memcpy(&one, parts[rank].data() + i * sizeof(T), sizeof(T));
      return op >= 100 ? static_cast<T>(one * static_cast<T>(factors[op])) : one;
    };
    T sum = value(0);
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      const T one = value(rank);
      sum = op == 1   ? sum * one
            : op == 2 ? std::max(sum, one)
            : op == 3 ? std::min(sum, one)
                      : sum + one;
    }
    if (op == 4) sum = sum / static_cast<T>(parts.size());
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}
void fold(char* out, const std::vector<std::string>& parts, size_t count, int type, int op) {
  switch (type) {
  case 0:
    return fold<int8_t>(out, parts, count, op);
  case 1:
    return fold<uint8_t>(out, parts, count, op);
  case 2:
    return fold<int32_t>(out, parts, count, op);
  case 4:
    return fold<int64_t>(out, parts, count, op);
  case 8:
    return fold<double>(out, parts, count, op);
  default:
    return fold<float>(out, parts, count, op);
  }
}

} // namespace

extern "C" {
int cresset_emulates_nccl = 1;
int ncclGetVersion(int* version) { return *version = 22800, 0; }
const char* ncclGetErrorString(int result) { return result ? "emulated error" : "no error"; }
const char* ncclGetLastError(ncclComm*) { return ""; }
int ncclGetUniqueId(Id* id) {
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->bytes, sizeof id->bytes, "%d-%ld", ::getpid(), ::random());
  note(nullptr, "ncclGetUniqueId");
  return 0;
}
int ncclCommInitRank(ncclComm** out, int size, Id id, int rank) {
  auto* comm = new ncclComm{rank, size, std::vector<int>(size, -1)};
  socklen_t length;
  auto own = address_of(id, rank, length);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ::bind(listener, reinterpret_cast<sockaddr*>(&own), length);
  ::listen(listener, size);
  for (int peer = 0; peer < rank; ++peer) {
    auto there = address_of(id, peer, length);
    const int socket = comm->sockets[peer] = ::socket(AF_UNIX, SOCK_STREAM, 0);
    while (::connect(socket, reinterpret_cast<sockaddr*>(&there), length)) ::usleep(1000);
    put(socket, reinterpret_cast<char*>(&rank), sizeof rank);
  }
  for (int more = rank + 1; more < size; ++more) {
    const int socket = ::accept(listener, nullptr, nullptr);
    int peer = 0;
    take(socket, reinterpret_cast<char*>(&peer), sizeof peer);
    comm->sockets[peer] = socket;
  }
  ::close(listener);
  note(comm, "ncclCommInitRank size=%d rank=%d", size, rank);
  return *out = comm, 0;
}
int ncclCommFinalize(ncclComm* comm) { return note(comm, "ncclCommFinalize"), 0; }
int ncclCommDestroy(ncclComm* comm) {
  note(comm, "ncclCommDestroy");
  for (const int socket : comm->sockets) ::close(socket);
  delete comm;
  return 0;
}
int ncclCommAbort(ncclComm* comm) { return note(comm, "ncclCommAbort"), 0; }
int ncclCommGetAsyncError(ncclComm*, int* result) { return *result = 0, 0; }
int ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, ncclComm* comm) {
  double factor = 0;
  if (type == 8) {
    std::memcpy(&factor, scalar, 8);
  } else {
    float small;
    std::memcpy(&small, scalar, 4);
    factor = small;
  }
  note(comm, "ncclRedOpCreatePreMulSum type=%d residence=%d", type, residence);
  factors[*op = next_factor++] = factor;
  return 0;
}
int ncclRedOpDestroy(int, ncclComm* comm) { return note(comm, "ncclRedOpDestroy"), 0; }
int ncclGroupStart() { return ++depth, 0; }
int ncclGroupEnd() {
  if (--depth) return 0;
  auto calls = std::move(queued);
  auto transfers = std::move(moves);
  queued.clear(), moves.clear();
  for (auto& call : calls) call();
  if (!transfers.empty()) run_moves(transfers);
  return 0;
}
int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                  void*) {
  note(comm, "ncclAllReduce count=%zu type=%d op=%d group=%d", count, type, op < 100 ? op : 100,
       depth);
  return run([=] {
    fold(static_cast<char*>(out), gathered(comm, in, count * size_of(type)), count, type, op);
  });
}
int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root, ncclComm* comm,
               void*) {
  note(comm, "ncclReduce count=%zu type=%d op=%d root=%d group=%d", count, type, op, root, depth);
  return run([=] {
    const auto all = gathered(comm, in, count * size_of(type));
    if (comm->rank == root) fold(static_cast<char*>(out), all, count, type, op);
  });
}
int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, ncclComm* comm,
                  void*) {
  note(comm, "ncclBroadcast count=%zu type=%d root=%d group=%d", count, type, root, depth);
  return run([=] {
    const auto all = gathered(comm, in, count * size_of(type));
    std::memcpy(out, all[root].data(), all[root].size());
  });
}
int ncclAllGather(const void* in, void* out, size_t count, int type, ncclComm* comm, void*) {
  note(comm, "ncclAllGather count=%zu type=%d group=%d", count, type, depth);
  return run([=] {
    const size_t bytes = count * size_of(type);
    const auto all = gathered(comm, in, bytes);
    for (size_t i = 0; i < all.size(); ++i) {
      std::memcpy(static_cast<char*>(out) + i * bytes, all[i].data(), bytes);
    }
  });
}
int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                      void*) {
  note(comm, "ncclReduceScatter count=%zu type=%d op=%d group=%d", count, type, op, depth);
  return run([=] {
    const size_t bytes = count * size_of(type);
    auto all = gathered(comm, in, bytes * static_cast<size_t>(comm->size));
    for (auto& one : all) one = one.substr(bytes * static_cast<size_t>(comm->rank), bytes);
    fold(static_cast<char*>(out), all, count, type, op);
  });
}
static int move(const Move& one) {
  if (depth) {
    moves.push_back(one);
  } else {
    run_moves({one});
  }
  return 0;
}
int ncclSend(const void* data, size_t count, int type, int peer, ncclComm* comm, void*) {
  note(comm, "ncclSend count=%zu type=%d peer=%d group=%d", count, type, peer, depth);
  auto* at = static_cast<char*>(const_cast<void*>(data));
  return move({comm, peer, at, count * size_of(type), true});
}
int ncclRecv(void* data, size_t count, int type, int peer, ncclComm* comm, void*) {
  note(comm, "ncclRecv count=%zu type=%d peer=%d group=%d", count, type, peer, depth);
  return move({comm, peer, static_cast<char*>(data), count * size_of(type), false});
}
int ncclCommRegister(ncclComm* comm, void* data, size_t bytes, void** handle) {
  note(comm, "ncclCommRegister bytes=%zu", bytes);
  return *handle = data, 0;
}
int ncclCommDeregister(ncclComm* comm, void*) { return note(comm, "ncclCommDeregister"), 0; }
}
