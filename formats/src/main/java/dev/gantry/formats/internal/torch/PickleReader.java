// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.formats.internal.torch.PickleValue.Constant;
import dev.gantry.formats.internal.torch.PickleValue.Dict;
import dev.gantry.formats.internal.torch.PickleValue.Global;
import dev.gantry.formats.internal.torch.PickleValue.Instance;
import dev.gantry.formats.internal.torch.PickleValue.Items;
import dev.gantry.formats.internal.torch.PickleValue.Persistent;
import dev.gantry.formats.internal.torch.PickleValue.Text;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;

/// Reads a pickle of protocol 0 to 5 as data. It executes no call: a call becomes an [Instance],
/// and functions and classes that the caller does not know are refused.
final class PickleReader {
  /// The estimated heap bytes of a value; the estimate is rather too high.
  private static final int VALUE_BYTES = 64;

  private static final int MAX_PROTOCOL = 5;

  /// The kind of the error about an unknown function or class.
  static final String UNSAFE = "unsafe-global";

  private final PickleInput input;
  private final PickleScalars scalars;
  private final Predicate<Global> known;
  private final List<PickleValue> stack = new ArrayList<>();

  /// The sizes that the stack had when each mark was pushed.
  private final List<Integer> marks = new ArrayList<>();

  private final Map<Long, PickleValue> memo = new HashMap<>();
  private final List<Persistent> persistent = new ArrayList<>();

  /// @param known whether the caller knows a function or class; unknown ones are refused
  PickleReader(PickleInput input, Predicate<Global> known) {
    this.input = input;
    this.scalars = new PickleScalars(input);
    this.known = known;
  }

  /// Returns all references to objects outside the pickle.
  List<Persistent> persistent() {
    return persistent;
  }

  /// Reads the pickle up to its end, and no byte beyond it.
  PickleValue read() {
    while (true) {
      int opcode = input.opcode();
      if (opcode == '.') {
        PickleValue value = pop();
        if (!stack.isEmpty() || !marks.isEmpty()) {
          throw input.invalid("values are left at its end");
        }
        return value;
      }
      run(opcode);
    }
  }

  private void run(int opcode) {
    switch (opcode) {
      case 0x80 -> protocol(input.read());
      case 0x95 -> input.skip(Long.BYTES);
      case '(' -> {
        input.charge(VALUE_BYTES);
        marks.add(stack.size());
      }
      case '0' -> drop();
      case '1' -> popMark();
      case '2' -> push(peek());
      case 'N' -> push(Constant.NONE);
      case 0x88 -> push(Constant.TRUE);
      case 0x89 -> push(Constant.FALSE);
      case 'J', 'K', 'M', 'I', 'L', 'F', 'G', 0x8a, 0x8b -> push(scalars.number(opcode));
      case 'S', 'T', 'U', 'V', 'X', 0x8c, 0x8d, 'B', 'C', 0x8e, 0x96 ->
          push(scalars.string(opcode));
      case ']', ')', 0x8f -> push(new Items());
      case 'l', 't', 0x91 -> push(new Items(popMark()));
      case 0x85, 0x86, 0x87 -> push(new Items(top(opcode - 0x84)));
      case 'a' -> append(top(1));
      case 'e', 0x90 -> append(popMark());
      case '}' -> push(new Dict());
      case 'd' -> {
        List<PickleValue> items = popMark();
        push(new Dict());
        put(items);
      }
      case 's' -> put(top(2));
      case 'u' -> put(popMark());
      case 'p' -> memo.put(scalars.decimal(), peekKept());
      case 'q' -> memo.put(input.number(Byte.BYTES), peekKept());
      case 'r' -> memo.put(input.number(Integer.BYTES), peekKept());
      case 0x94 -> memo.put((long) memo.size(), peekKept());
      case 'g' -> push(remembered(scalars.decimal()));
      case 'h' -> push(remembered(input.number(Byte.BYTES)));
      case 'j' -> push(remembered(input.number(Integer.BYTES)));
      case 'c', 0x93, 'i', 'o', 'R', 0x81, 0x92, 'b' -> object(opcode);
      case 'P' -> persistent(new Text(scalars.line()));
      case 'Q' -> persistent(pop());
      default ->
          throw input.fault(
              "unknown-opcode",
              String.format(
                  Locale.ROOT, "0x%02x is not an opcode of a pickle that PyTorch writes", opcode));
    }
  }

  private void protocol(int version) {
    if (version > MAX_PROTOCOL) {
      throw input.fault("unknown-protocol", "protocol " + version + ", more than " + MAX_PROTOCOL);
    }
  }

  private void object(int opcode) {
    switch (opcode) {
      case 'c' -> push(global(scalars.line(), scalars.line()));
      case 0x93 -> {
        List<PickleValue> names = top(2);
        push(global(requireText(names.getFirst()), requireText(names.getLast())));
      }
      case 'i' -> {
        Global type = global(scalars.line(), scalars.line());
        push(call(type, popMark()));
      }
      case 'o' -> {
        List<PickleValue> all = popMark();
        if (all.isEmpty()) {
          throw input.invalid("OBJ has no class");
        }
        push(call(all.getFirst(), all.subList(1, all.size())));
      }
      case 'R', 0x81 -> {
        List<PickleValue> arguments = requireItems(pop());
        push(call(pop(), arguments));
      }
      case 0x92 -> {
        List<PickleValue> called = top(3);
        push(call(called.getFirst(), requireItems(called.get(1))));
      }
      default -> build(pop());
    }
  }

  private Global global(String module, String name) {
    Global global = new Global(module.equals("__builtin__") ? "builtins" : module, name);
    if (!known.test(global)) {
      throw input.fault(
          UNSAFE,
          "the pickle refers to "
              + global.path()
              + ", which is not a tensor, storage or plain container; nothing of it was run");
    }
    return global;
  }

  /// Makes the value of a call. An ordered dictionary is made at once, since entries are put into it.
  private PickleValue call(PickleValue function, List<PickleValue> arguments) {
    if (!(function instanceof Global global)) {
      throw input.invalid("a value is called that is not a function");
    }
    if (!global.module().equals("collections")) {
      return new Instance(global, arguments, input.opcodeOffset());
    }
    Dict dict = new Dict();
    for (PickleValue argument : arguments) {
      switch (argument) {
        case Dict given -> {
          input.charge((long) given.entries().size() * VALUE_BYTES);
          dict.entries().putAll(given.entries());
        }
        case Items(List<PickleValue> pairs) -> {
          for (PickleValue pair : pairs) {
            List<PickleValue> both = requireItems(pair);
            if (both.size() != 2) {
              throw input.invalid("an entry of a dictionary is not a pair");
            }
            input.charge(VALUE_BYTES);
            dict.entries().put(both.getFirst(), both.getLast());
          }
        }
        default -> throw input.invalid("a dictionary is made of another value");
      }
    }
    return dict;
  }

  private void build(PickleValue state) {
    switch (peek()) {
      case Instance instance -> instance.build(state);
      // Python would set attributes of the dictionary here. Attributes are not entries, so they
      // are ignored.
      case Dict _ -> {}
      default -> throw input.invalid("BUILD changes a value that has no state");
    }
  }

  private void persistent(PickleValue id) {
    // Ids that lie in one another would make the hash of a key recurse without a bound.
    if (id instanceof Persistent) {
      throw input.invalid("a reference refers to a reference");
    }
    Persistent reference = new Persistent(id, input.opcodeOffset());
    persistent.add(reference);
    push(reference);
  }

  private void append(List<PickleValue> added) {
    if (!(peek() instanceof Items(List<PickleValue> values))) {
      throw input.invalid("items are appended to a value that is not a list");
    }
    input.charge((long) added.size() * Long.BYTES);
    values.addAll(added);
  }

  private void put(List<PickleValue> added) {
    if (!(peek() instanceof Dict(var entries)) || added.size() % 2 != 0) {
      throw input.invalid("entries are put into a value that is not a dictionary");
    }
    input.charge((long) added.size() * VALUE_BYTES);
    for (int i = 0; i < added.size(); i += 2) {
      entries.put(added.get(i), added.get(i + 1));
    }
  }

  private void push(PickleValue value) {
    input.charge(VALUE_BYTES);
    stack.add(value);
  }

  private int floor() {
    return marks.isEmpty() ? 0 : marks.getLast();
  }

  private PickleValue peek() {
    if (stack.size() <= floor()) {
      throw input.invalid("an opcode lacks a value");
    }
    return stack.getLast();
  }

  private PickleValue peekKept() {
    input.charge(VALUE_BYTES);
    return peek();
  }

  private PickleValue pop() {
    PickleValue value = peek();
    stack.removeLast();
    return value;
  }

  private void drop() {
    if (stack.size() == floor() && !marks.isEmpty()) {
      marks.removeLast();
    } else {
      pop();
    }
  }

  private List<PickleValue> top(int count) {
    if (stack.size() - floor() < count) {
      throw input.invalid("an opcode lacks a value");
    }
    return cut(stack.size() - count);
  }

  private List<PickleValue> popMark() {
    if (marks.isEmpty()) {
      throw input.invalid("an opcode lacks its MARK");
    }
    return cut(marks.removeLast());
  }

  /// Removes the values from the height `from` on from the stack, and returns them.
  private List<PickleValue> cut(int from) {
    List<PickleValue> upper = stack.subList(from, stack.size());
    List<PickleValue> taken = new ArrayList<>(upper);
    upper.clear();
    return taken;
  }

  private PickleValue remembered(long index) {
    PickleValue value = memo.get(index);
    if (value == null) {
      throw input.invalid("the memo has no value " + index);
    }
    return value;
  }

  private String requireText(PickleValue value) {
    if (value instanceof Text(String text)) {
      return text;
    }
    throw input.invalid("a name is not a string");
  }

  private List<PickleValue> requireItems(PickleValue value) {
    if (value instanceof Items(List<PickleValue> items)) {
      return items;
    }
    throw input.invalid("arguments are no tuple");
  }
}
