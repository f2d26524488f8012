/*
 * What kernels/native/bind_*.cpp use of nanobind and of Python's buffers, without Python.
 *
 * The same binding code compiles against this header into a program that answers calls on a pipe
 * (server.cpp): so another architecture's kernels are called with the arguments, and refuse them with
 * the words, that the Python module has.
 */
#ifndef IDENTIC_TEST_NANOBIND_H
#define IDENTIC_TEST_NANOBIND_H

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/* ---- Python's buffers -------------------------------------------------------------------------- */

using PyObject = void;
struct Py_buffer {
  void* buf;
  void* obj;
  int64_t itemsize;
  int ndim;
  const char* format;
  int64_t* shape;
  int64_t* strides;
};
constexpr int PyBUF_STRIDES = 1, PyBUF_FORMAT = 2, PyBUF_WRITABLE = 4;

namespace nanobind {

/* ---- values ------------------------------------------------------------------------------------ */

/* One argument or result: a number, text, bytes, nothing, a list, a dictionary, an array or an object. */
struct Value {
  char tag = 'n'; /* i b s y n l d a o */
  int64_t number = 0;
  std::string text; /* also the bytes of 'y', the elements of 'a' */
  std::vector<Value> items;
  std::vector<std::string> names; /* keys of 'd' */
  bool writable = false;
  char format[2] = {};
  int64_t itemsize = 1;
  std::vector<int64_t> shape, strides;

  Value() = default;
  Value(bool value) : tag('b'), number(value) {}
  Value(const std::string& value) : tag('s'), text(value) {}
  Value(const char* value) : tag('s'), text(value) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value(T value) : tag('i'), number(static_cast<int64_t>(value)) {}
};

class value_error : public std::runtime_error {
 public:
  explicit value_error(const char* what) : std::runtime_error(what) {}
};

class handle {
 public:
  handle(Value& value) : value_(&value) {}
  PyObject* ptr() const { return value_; }

 private:
  Value* value_;
};

class list {
 public:
  explicit list(Value& value) : value_(&value) {}
  size_t size() const { return value_->items.size(); }
  handle operator[](size_t i) const { return handle(value_->items[i]); }

 private:
  Value* value_;
};

class dict {
 public:
  Value& operator[](const char* key) {
    value.tag = 'd';
    value.names.emplace_back(key);
    value.items.emplace_back();
    return value.items.back();
  }
  Value value;
};

class bytes {
 public:
  bytes(const void* data, size_t size) : data_(static_cast<const char*>(data), size) {}
  const void* data() const { return data_.data(); }
  size_t size() const { return data_.size(); }

 private:
  std::string data_;
};

struct none {};
struct gil_scoped_release {
  gil_scoped_release() {}
  ~gil_scoped_release() {}
};
template <class> struct call_guard {};

struct arg {
  explicit arg(const char* word) : name(word) {}
  arg operator=(const none&) const { return *this; }
  template <class T> arg operator=(const T& otherwise) const {
    arg made = *this;
    made.value = Value(otherwise);
    return made;
  }
  std::string name;
  Value value; /* where the caller gives none */
};

/* ---- conversions of arguments and results ------------------------------------------------------ */

std::vector<void*>& objects(); /* objects that a class's __init__ made, by number */

template <class T, class = void>
struct From;

template <class T>
struct From<T, std::enable_if_t<std::is_integral_v<T>>> {
  static T get(Value& v) {
    if (v.tag != 'i' && v.tag != 'b') throw std::invalid_argument("a number is wanted");
    return static_cast<T>(v.number);
  }
};
template <> struct From<std::string> { static std::string get(Value& v) { return v.text; } };
template <> struct From<bytes> { static bytes get(Value& v) { return bytes(v.text.data(), v.text.size()); } };
template <> struct From<handle> { static handle get(Value& v) { return handle(v); } };
template <> struct From<list> { static list get(Value& v) { return list(v); } };
template <class T>
struct From<std::vector<T>> {
  static std::vector<T> get(Value& v) {
    if (v.tag != 'l') throw std::invalid_argument("a list is wanted");
    std::vector<T> all;
    for (Value& item : v.items) all.push_back(From<T>::get(item));
    return all;
  }
};
template <class T, size_t N>
struct From<std::array<T, N>> {
  static std::array<T, N> get(Value& v) {
    if (v.tag != 'l' || v.items.size() != N) throw std::invalid_argument("a list of another length is wanted");
    std::array<T, N> all;
    for (size_t i = 0; i < N; ++i) all[i] = From<T>::get(v.items[i]);
    return all;
  }
};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> get(Value& v) {
    if (v.tag == 'n') return std::nullopt;
    return From<T>::get(v);
  }
};
template <class A, class B>
struct From<std::pair<A, B>> {
  static std::pair<A, B> get(Value& v) { return {From<A>::get(v.items.at(0)), From<B>::get(v.items.at(1))}; }
};
/* An object by number; a pointer to one is room for a new one. */
template <class T>
struct From<T, std::enable_if_t<std::is_class_v<T> && !std::is_default_constructible_v<T>>> {
  static T& get(Value& v) { return *static_cast<T*>(objects().at(static_cast<size_t>(v.number))); }
};
template <class T>
struct From<T*> {
  static T* get(Value& v) {
    objects().push_back(::operator new(sizeof(T), std::align_val_t(64)));
    v.number = static_cast<int64_t>(objects().size()) - 1;
    return static_cast<T*>(objects().back());
  }
};

inline Value to_value(const dict& d) { return d.value; }
inline Value to_value(const bytes& b) {
  Value v;
  v.tag = 'y';
  v.text.assign(static_cast<const char*>(b.data()), b.size());
  return v;
}
template <class T>
Value to_value(const std::vector<T>& all) {
  Value v;
  v.tag = 'l';
  for (const T& one : all) v.items.emplace_back(one);
  return v;
}
template <class T> Value to_value(const T& x) { return Value(x); }

/* ---- functions ---------------------------------------------------------------------------------- */

struct Function {
  std::vector<std::string> names;
  std::vector<Value> defaults;
  std::function<Value(std::vector<Value>&)> call;
};

std::map<std::string, Function>& functions();

template <class R, class... A, size_t... I, class F>
Value invoke(F& function, std::vector<Value>& values, std::index_sequence<I...>) {
  if (values.size() != sizeof...(A)) throw std::invalid_argument("another number of arguments is wanted");
  if constexpr (std::is_void_v<R>) {
    function(From<std::remove_cv_t<std::remove_reference_t<A>>>::get(values[I])...);
    return Value();
  } else {
    return to_value(function(From<std::remove_cv_t<std::remove_reference_t<A>>>::get(values[I])...));
  }
}

template <class R, class... A>
std::function<Value(std::vector<Value>&)> wrap(R (*function)(A...)) {
  return [function](std::vector<Value>& values) {
    auto* call = function;
    return invoke<R, A...>(call, values, std::index_sequence_for<A...>());
  };
}

inline void take(Function& to, const arg& one) {
  to.names.push_back(one.name);
  to.defaults.push_back(one.value);
}
template <class T> void take(Function&, const T&) {}

template <class F, class... Extra>
void define(const std::string& name, F function, const Extra&... extra) {
  Function made;
  (take(made, extra), ...);
  made.call = wrap(+function);
  functions()[name] = made;
}

struct module_ {
  std::string text;
  std::string& doc() { return text; }
  template <class F, class... Extra>
  void def(const char* name, F function, const Extra&... extra) {
    define(name, function, extra...);
  }
};

template <class T>
struct class_ {
  std::string name;
  class_(module_&, const char* word, const char*) : name(word) {}
  template <class F, class... Extra>
  class_& def(const char* method, F function, const Extra&... extra) {
    define(name + "." + method, function, arg("self"), extra...);
    return *this;
  }
};

}  // namespace nanobind

inline int PyObject_GetBuffer(PyObject* object, Py_buffer* view, int flags) {
  auto* value = static_cast<nanobind::Value*>(object);
  const bool plain = value->tag == 'y';
  if ((value->tag != 'a' && !plain) || ((flags & PyBUF_WRITABLE) && !value->writable)) return -1;
  if (plain) {
    value->shape.assign(1, static_cast<int64_t>(value->text.size()));
    value->strides.assign(1, 1);
    value->format[0] = 'B';
  }
  *view = {value->text.data(), value, value->itemsize, static_cast<int>(value->shape.size()), value->format,
           value->shape.data(), value->strides.data()};
  return 0;
}
inline void PyBuffer_Release(Py_buffer*) {}
inline void PyErr_Clear() {}
inline int PyBuffer_IsContiguous(const Py_buffer* view, char) {
  int64_t step = view->itemsize;
  for (int axis = view->ndim; axis-- > 0;) {
    if (view->shape[axis] == 0) return 1;
  }
  for (int axis = view->ndim; axis-- > 0;) {
    if (view->shape[axis] != 1 && view->strides[axis] != step) return 0;
    step *= view->shape[axis];
  }
  return 1;
}

#define NB_MODULE(name, variable) void register_module(nanobind::module_& variable)
void register_module(nanobind::module_& m);

#endif
