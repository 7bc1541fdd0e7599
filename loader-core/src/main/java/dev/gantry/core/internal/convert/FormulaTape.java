// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.spi.Formula;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/// A formula as a list of steps, each of which uses results of earlier steps. Equal parts of the
/// formula are one step. Immutable; two tapes are equal if their steps are.
///
/// @param steps the steps, of which the last computes the element's value
record FormulaTape(List<Step> steps) {
  /// The longest run of columns with the same result that is looked for.
  static final int MAX_RUN = 1024;

  /// One operation. Operands are the numbers of earlier steps.
  ///
  /// @param formula the operation; its own operands are not used, but those of `key`
  /// @param run a power of two; the result is the same for all columns of a run, and runs begin at
  ///     multiples of this length
  /// @param ofColumn whether the result differs from column to column
  /// @param ofRow whether the result differs from row to row
  record Step(Key key, Formula formula, boolean real, int run, boolean ofColumn, boolean ofRow) {
    int operand(int number) {
      return key.operands().get(number);
    }

    int operands() {
      return key.operands().size();
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Step step && key.equals(step.key);
    }

    @Override
    public int hashCode() {
      return key.hashCode();
    }
  }

  /// The operation of a step and the steps whose results are its operands.
  ///
  /// @param what the operation without its operands
  record Key(Object what, List<Integer> operands) {}

  /// @param number the number of the step
  /// @param unit the number of columns after which the value grows by 1; 0 if it does not grow
  ///     regularly
  /// @param modulus the value at which it starts at 0 again; 0 if it never does
  private record Counted(int number, int unit, int modulus) {}

  FormulaTape {
    steps = List.copyOf(steps);
  }

  static FormulaTape of(Formula formula) {
    Writer writer = new Writer();
    writer.write(formula);
    return new FormulaTape(writer.steps);
  }

  int last() {
    return steps.size() - 1;
  }

  private static final class Writer {
    final List<Step> steps = new ArrayList<>();
    private final IdentityHashMap<Formula, Counted> known = new IdentityHashMap<>();
    private final Map<Key, Counted> written = new HashMap<>();

    Counted write(Formula formula) {
      Counted earlier = known.get(formula);
      if (earlier == null) {
        earlier = step(formula);
        known.put(formula, earlier);
      }
      return earlier;
    }

    private Counted step(Formula formula) {
      return switch (formula) {
        case Formula.Axis axis -> add(axis, axis, axis == Formula.Axis.COLUMN ? 1 : 0, 0);
        case Formula.Constant constant -> add(constant, constant, 0, 0);
        case Formula.Parameter parameter -> add(parameter, parameter, 0, 0);
        case Formula.Binary binary -> binary(binary);
        case Formula.ToReal real -> add(real, real.what(), 0, 0, write(real.integer()));
        case Formula.Load load -> {
          Counted[] operands = new Counted[load.indexes().size() + 1];
          operands[0] = write(load.offset());
          for (int i = 1; i < operands.length; i++) {
            operands[i] = write(load.indexes().get(i - 1));
          }
          yield add(load, List.of("load", load.input(), load.bytes()), 0, 0, operands);
        }
        case Formula.Lookup lookup -> add(lookup, lookup.table(), 0, 0, write(lookup.index()));
      };
    }

    private Counted binary(Formula.Binary binary) {
      Counted left = write(binary.left());
      Counted right = write(binary.right());
      int unit = 0;
      int modulus = 0;
      if (binary.right() instanceof Formula.Constant(int by) && by > 0 && left.unit() > 0) {
        if (binary.operator() == Formula.Operator.DIVIDE && left.modulus() % by == 0) {
          unit = Math.multiplyExact(left.unit(), by);
          modulus = left.modulus() / by;
        } else if (binary.operator() == Formula.Operator.REMAINDER && left.modulus() % by == 0) {
          unit = left.unit();
          modulus = by;
        }
      }
      return add(binary, binary.operator(), unit, modulus, left, right);
    }

    private Counted add(Formula formula, Object what, int unit, int modulus, Counted... operands) {
      List<Integer> numbers = new ArrayList<>();
      boolean ofColumn = formula == Formula.Axis.COLUMN;
      boolean ofRow = formula == Formula.Axis.ROW || formula == Formula.Axis.MATRIX;
      int run = ofColumn ? 1 : MAX_RUN;
      for (Counted operand : operands) {
        Step step = steps.get(operand.number());
        numbers.add(operand.number());
        run = Math.min(run, step.run());
        ofColumn |= step.ofColumn();
        ofRow |= step.ofRow();
      }
      Key key = new Key(what, List.copyOf(numbers));
      Counted same = written.get(key);
      if (same == null) {
        int whole = unit == 0 ? run : Math.min(MAX_RUN, Math.max(run, Integer.lowestOneBit(unit)));
        steps.add(new Step(key, formula, formula.isReal(), whole, ofColumn, ofRow));
        same = new Counted(steps.size() - 1, unit, modulus);
        written.put(key, same);
      }
      return same;
    }
  }
}
