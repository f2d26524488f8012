/*
 * Answers calls of the native module's functions.
 *
 * A message is a value; numbers have their low byte first. A request is the list (name, positional
 * arguments, keyword arguments as a dictionary); an answer is the list (result, the bytes of every
 * writable array in order), or the list (kind of error, words). remote.py is the other side.
 */
#include "server.h"

#include <nanobind/nanobind.h>

#include <cstdio>
#include <cstdlib>

namespace nanobind {

std::vector<void*>& objects() {
  static std::vector<void*> all;
  return all;
}

std::map<std::string, Function>& functions() {
  static std::map<std::string, Function> all;
  return all;
}

}  // namespace nanobind

namespace {

using nanobind::Value;

struct Reader {
  const char* at;
  int64_t number(int bytes = 8) {
    uint64_t n = 0;
    for (int i = 0; i < bytes; ++i) n |= static_cast<uint64_t>(static_cast<uint8_t>(*at++)) << 8 * i;
    return static_cast<int64_t>(n);
  }
  std::string text() {
    const size_t size = static_cast<size_t>(number());
    std::string found(at, size);
    at += size;
    return found;
  }
  Value value() {
    Value v;
    v.tag = *at++;
    switch (v.tag) {
      case 'i': v.number = number(); break;
      case 'o': v.number = number(); break;
      case 'b': v.number = number(1); break;
      case 's':
      case 'y': v.text = text(); break;
      case 'l':
      case 'd': {
        const int64_t count = number();
        for (int64_t i = 0; i < count; ++i) {
          if (v.tag == 'd') v.names.push_back(text());
          v.items.push_back(value());
        }
        break;
      }
      case 'a': {
        v.writable = number(1);
        v.format[0] = static_cast<char>(number(1));
        v.itemsize = number(1);
        const int64_t axes = number(1);
        for (int64_t i = 0; i < axes; ++i) v.shape.push_back(number());
        for (int64_t i = 0; i < axes; ++i) v.strides.push_back(number());
        v.text = text();
        break;
      }
      default: break;
    }
    return v;
  }
};

struct Writer {
  std::string made;
  void number(int64_t n, int bytes = 8) {
    for (int i = 0; i < bytes; ++i) made.push_back(static_cast<char>(static_cast<uint64_t>(n) >> 8 * i));
  }
  void text(const std::string& s) {
    number(static_cast<int64_t>(s.size()));
    made += s;
  }
  void value(const Value& v) {
    made.push_back(v.tag == 'a' ? 'y' : v.tag);
    switch (v.tag) {
      case 'i':
      case 'o': number(v.number); break;
      case 'b': number(v.number, 1); break;
      case 's':
      case 'y':
      case 'a': text(v.text); break;
      case 'l':
      case 'd':
        number(static_cast<int64_t>(v.items.size()));
        for (size_t i = 0; i < v.items.size(); ++i) {
          if (v.tag == 'd') text(v.names[i]);
          value(v.items[i]);
        }
        break;
      default: break;
    }
  }
};

void collect(const Value& v, Value& to) {
  if (v.tag == 'a' && v.writable) to.items.push_back(v);
  for (const Value& item : v.items) collect(item, to);
}

Value pair(Value first, Value second) {
  Value v;
  v.tag = 'l';
  v.items = {std::move(first), std::move(second)};
  return v;
}

Value answer(Value& request) {
  const std::string& name = request.items.at(0).text;
  std::vector<Value> arguments = request.items.at(1).items;
  Value& keywords = request.items.at(2);
  const auto found = nanobind::functions().find(name);
  if (found == nanobind::functions().end()) return pair(Value("AttributeError"), Value(name));
  try {
    const auto& names = found->second.names;
    const auto& otherwise = found->second.defaults;
    for (size_t i = arguments.size(); i < names.size(); ++i) arguments.push_back(otherwise[i]);
    for (size_t i = 0; i < keywords.names.size(); ++i) {
      size_t place = 0;
      while (place < names.size() && names[place] != keywords.names[i]) ++place;
      if (place == names.size()) throw std::invalid_argument("unknown argument " + keywords.names[i]);
      arguments[place] = keywords.items[i];
    }
    Value result = found->second.call(arguments);
    if (name.find(".__init__") != std::string::npos) result = arguments[0];
    Value written;
    written.tag = 'l';
    for (const Value& one : arguments) collect(one, written);
    return pair(std::move(result), std::move(written));
  } catch (const nanobind::value_error& problem) {
    return pair(Value("ValueError"), Value(problem.what()));
  } catch (const std::invalid_argument& problem) {
    return pair(Value("TypeError"), Value(problem.what()));
  }
}

}  // namespace

void begin() {
  nanobind::module_ m;
  register_module(m);
}

std::string answered(const std::string& message) {
  Value request = Reader{message.data()}.value();
  Writer reply;
  reply.value(answer(request));
  return reply.made;
}

std::string called(const std::string& message) { return Reader{message.data()}.value().items.at(0).text; }
