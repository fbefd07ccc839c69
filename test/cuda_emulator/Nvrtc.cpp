// The emulated run-time compiler: g++ makes a shared object of the program. A first pass expands
// macros, which shows the names of all kernels; each gets an entry that calls it with untyped
// arguments. Results are kept on disk by content (CRESSET_EMULATOR_CACHE, else a folder of the
// user's cache), because g++ takes seconds where NVRTC takes a fraction of one.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

extern char** environ;

namespace {

enum : int {
  kSuccess = 0,
  kInvalidInput = 3,
  kInvalidProgram = 4,
  kCompilation = 6,
  kInternal = 11
};

constexpr char kMagic[16] = "CRESSETEMULATOR";

struct Program {
  std::string source, name, log, image;
  std::vector<std::pair<std::string, std::string>> headers;
};

std::string read_file(const std::string& path) {
  std::string text;
  if (FILE* f = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;) {
      text.append(buffer, n);
    }
    std::fclose(f);
  }
  return text;
}

void make_folders(const std::string& path) {
  for (size_t i = 1; i <= path.size(); ++i) {
    if (i == path.size() || path[i] == '/') {
      mkdir(path.substr(0, i).c_str(), 0777);
    }
  }
}

void write_file(const std::string& path, const std::string& text) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) {
    make_folders(path.substr(0, slash));
  }
  if (FILE* f = std::fopen(path.c_str(), "wb")) {
    std::fwrite(text.data(), 1, text.size(), f);
    std::fclose(f);
  }
}

// The folder of this library, where the device prelude lies too.
std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info)) {
    return ".";
  }
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

std::string cache_folder() {
  if (const char* folder = std::getenv("CRESSET_EMULATOR_CACHE")) {
    return folder;
  }
  if (const char* folder = std::getenv("XDG_CACHE_HOME")) {
    return std::string(folder) + "/cresset-emulator";
  }
  const char* home = std::getenv("HOME");
  return std::string(home ? home : "/tmp") + "/.cache/cresset-emulator";
}

std::string hash(const std::string& text) {
  uint64_t a = 0xcbf29ce484222325ull, b = 0x9e3779b97f4a7c15ull;
  for (unsigned char c : text) {
    a = (a ^ c) * 0x100000001b3ull;
    b = (b ^ (c + 0x51u)) * 0x100000001b3ull;
    b ^= b >> 29;
  }
  char out[40];
  std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return out;
}

int run(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& w : words) {
    argv.push_back(const_cast<char*>(w.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  pid_t child;
  int status = -1;
  if (posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0) {
    waitpid(child, &status, 0);
  }
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Blanks `__global__` and gives the names of the functions it stood before.
std::vector<std::string> take_kernels(std::string& text) {
  static const std::string kMark = "__global__";
  std::vector<std::string> names;
  for (size_t position = 0; (position = text.find(kMark, position)) != std::string::npos;) {
    std::memset(&text[position], ' ', kMark.size());
    size_t end = text.find('(', position);
    const size_t body = text.find_first_of(";{", position);
    if (end == std::string::npos || body < end) {
      continue;
    }
    while (end > position && !word(text[end - 1])) {
      --end;
    }
    size_t start = end;
    while (start > position && word(text[start - 1])) {
      --start;
    }
    names.push_back(text.substr(start, end - start));
  }
  return names;
}

// The options g++ shares with NVRTC; the rest (architecture, line information) has no meaning here.
std::vector<std::string> host_options(int count, const char* const* options) {
  std::vector<std::string> kept;
  for (int i = 0; i < count; ++i) {
    std::string o = options[i];
    const std::string longer = "--define-macro=";
    if (o.rfind(longer, 0) == 0) {
      o = "-D" + o.substr(longer.size());
    }
    if ((o == "-D" || o == "--define-macro") && i + 1 < count) {
      o = std::string("-D") + options[++i];
    }
    if (o.rfind("-D", 0) == 0 || o.rfind("-U", 0) == 0) {
      kept.push_back(o);
    }
  }
  return kept;
}

int compile(Program& p, const std::vector<std::string>& options, const std::string& out) {
  const std::string self = own_folder();
  // Threads of one process may compile the same program at the same time.
  static std::atomic<unsigned> compilations{0};
  const std::string folder =
      out + "." + std::to_string(getpid()) + "." + std::to_string(compilations.fetch_add(1));
  const std::string log = folder + "/log";
  write_file(folder + "/program.cpp", p.source);
  for (const auto& [name, text] : p.headers) {
    write_file(folder + "/include/" + name, text);
  }
  const char* chosen = std::getenv("CRESSET_EMULATOR_CXX");
  const std::string cxx = chosen && *chosen ? chosen : "g++";
  std::vector<std::string> words = {cxx,          "-E",
                                    "-P",         "-std=gnu++17",
                                    "-w",         "-I" + self,
                                    "-include",   "device_prelude.h",
                                    "-idirafter", folder + "/include"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {folder + "/program.cpp", "-o", folder + "/program.ii"});
  int status = run(words, log);
  if (status == 0) {
    std::string text = read_file(folder + "/program.ii");
    const std::vector<std::string> names = take_kernels(text);
    for (const std::string& n : names) {
      const std::string type = "cresset_emulator_detail::Entry<decltype(&" + n + ")>";
      const std::string head = "\nextern \"C\" __attribute__((visibility(\"default\"))) ";
      text += head + "void cresset_emulator_call_" + n + "(void** a) { " + type + "::call(&" + n +
              ", a); }";
      text += head + "const " + type + "::Sizes cresset_emulator_sizes_" + n + ";" + "\nconst " +
              type + "::Sizes cresset_emulator_sizes_" + n + " = " + type + "::sizes();\n";
    }
    write_file(folder + "/program.ii", text);
    status =
        run({cxx, "-x", "c++-cpp-output", "-std=gnu++17", "-O1", "-w", "-fPIC", "-shared",
             "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno", "-fno-gnu-unique",
             "-fvisibility=hidden", folder + "/program.ii", "-o", folder + "/program.so", "-lm"},
            log);
  }
  p.log = read_file(log);
  if (status == 0) {
    rename((folder + "/program.so").c_str(),
           out.c_str()); // atomic: other processes see all or none
  }
  if (status == 0 || !std::getenv("CRESSET_EMULATOR_KEEP")) {
    run({"rm", "-rf", folder}, "/dev/null");
  }
  return status;
}

std::string wrap(const std::string& object) {
  const uint64_t size = object.size();
  std::string image(kMagic, sizeof kMagic);
  image.append(reinterpret_cast<const char*>(&size), sizeof size);
  return image + object;
}

} // namespace

using Handle = Program*;

EMULATOR_API int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return kSuccess;
}
EMULATOR_API const char* nvrtcGetErrorString(int code) {
  return code == kSuccess       ? "NVRTC_SUCCESS"
         : code == kCompilation ? "NVRTC_ERROR_COMPILATION"
                                : "NVRTC_ERROR";
}
EMULATOR_API int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return kSuccess;
}
EMULATOR_API int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 89;
  return kSuccess;
}
EMULATOR_API int nvrtcCreateProgram(Handle* program, const char* source, const char* name,
                                    int count, const char* const* headers,
                                    const char* const* names) {
  Program* p = new Program;
  p->source = source;
  p->name = name ? name : "program";
  for (int i = 0; i < count; ++i) {
    p->headers.emplace_back(names[i], headers[i]);
  }
  *program = p;
  return kSuccess;
}
EMULATOR_API int nvrtcDestroyProgram(Handle* program) {
  delete *program;
  *program = nullptr;
  return kSuccess;
}
EMULATOR_API int nvrtcCompileProgram(Handle p, int count, const char* const* options) {
  if (std::getenv("CRESSET_EMULATOR_DRY")) { // its kernels will not run
    p->image = wrap("");
    return kSuccess;
  }
  const std::vector<std::string> kept = host_options(count, options);
  std::string key = p->source + read_file(own_folder() + "/device_prelude.h") +
                    read_file(own_folder() + "/Abi.h");
  for (const std::string& o : kept) {
    key += '\0' + o;
  }
  for (const auto& [name, text] : p->headers) {
    key += '\0' + name + '\0' + text;
  }
  const std::string folder = cache_folder();
  make_folders(folder);
  const std::string out = folder + "/" + hash(key) + ".so";
  std::string object = read_file(out);
  if (object.empty()) {
    if (compile(*p, kept, out)) {
      return kCompilation;
    }
    object = read_file(out);
  }
  p->image = wrap(object);
  return object.empty() ? kInternal : kSuccess;
}

EMULATOR_API int nvrtcGetCUBINSize(Handle p, size_t* size) {
  *size = p->image.size();
  return kSuccess;
}
EMULATOR_API int nvrtcGetCUBIN(Handle p, char* to) {
  std::memcpy(to, p->image.data(), p->image.size());
  return kSuccess;
}
EMULATOR_API int nvrtcGetPTXSize(Handle p, size_t* size) { return nvrtcGetCUBINSize(p, size); }
EMULATOR_API int nvrtcGetPTX(Handle p, char* to) { return nvrtcGetCUBIN(p, to); }
EMULATOR_API int nvrtcGetProgramLogSize(Handle p, size_t* size) {
  *size = p->log.size() + 1;
  return kSuccess;
}
EMULATOR_API int nvrtcGetProgramLog(Handle p, char* to) {
  std::memcpy(to, p->log.c_str(), p->log.size() + 1);
  return kSuccess;
}
EMULATOR_API int nvrtcAddNameExpression(Handle, const char*) { return kInvalidInput; }
EMULATOR_API int nvrtcGetLoweredName(Handle, const char*, const char**) { return kInvalidProgram; }
