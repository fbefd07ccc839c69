// Where programs look for nodes of symbolic numbers. A SymInt is a handle here and owns nothing
// (Note [Symbolic integers are handles]); a program that makes a node and turns it into a SymInt
// gets the handle of that number.
#pragma once
#include <c10/core/SymInt.h>
#include <c10/util/Exception.h>
#include <c10/util/intrusive_ptr.h>

namespace c10 {

// A number a program describes by an object of its own.
class DescribedSymNode : public intrusive_ptr_target {
 public:
  virtual SymInt number() const = 0;
};

class SymNode {
 public:
  SymNode() = default;
  explicit SymNode(intrusive_ptr<DescribedSymNode> node) : node_(std::move(node)) {}
  // Error where there is no node.
  explicit operator SymInt() const {
    TORCH_CHECK(node_, "a SymInt cannot be made of a SymNode without a node");
    return node_->number();
  }
  DescribedSymNode* get() const { return node_.get(); }
  explicit operator bool() const { return static_cast<bool>(node_); }

 private:
  intrusive_ptr<DescribedSymNode> node_;
};

} // namespace c10
