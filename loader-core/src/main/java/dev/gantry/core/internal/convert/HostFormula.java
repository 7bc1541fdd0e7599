// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.Cancellation;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.spi.Formula;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/// Computes formulas in host memory. Each step runs over up to [FormulaTape#MAX_RUN] columns at
/// once, in loops that the JVM compiles to vector instructions; a step whose result is the same
/// for a run of columns computes one result for each run, and a step that does not depend on the
/// row is computed once for all rows. Only one thread may use an instance.
final class HostFormula {
  /// How many elements a thread takes from a task at a time.
  private static final long PIECE_ELEMENTS = 1 << 20;

  private static final int CHUNK = FormulaTape.MAX_RUN;
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Dequantisation what;
  private final List<MemorySegment> sources = new ArrayList<>();
  private final MemorySegment target;
  private final List<FormulaTape.Step> steps;

  /// The results of each step, one for each run of columns; null if the step's results are floats.
  private final int[][] ints;

  private final float[][] reals;

  /// The steps that run once for each chunk of columns. The steps of `ofRow` run for each row of a
  /// chunk.
  private final List<Runnable> ofChunk = new ArrayList<>();

  private final List<Runnable> ofRow = new ArrayList<>();
  private final float[] results;
  private final int[] bits = new int[CHUNK];
  private final short[] shorts = new short[CHUNK];
  private int matrix;
  private int row;

  /// The chunk's first column in the whole tensor; `end` is the column after its last.
  private int column;

  private int end;

  private HostFormula(Dequantisation.Task task) {
    this.what = task.what();
    for (int i = 0; i < task.sources().size(); i++) {
      sources.add(memory(task.sources().get(i), what.inputs().get(i).bytes()));
    }
    this.target = memory(task.target(), what.targetBytes());
    this.steps = what.tape().steps();
    this.ints = new int[steps.size()][];
    this.reals = new float[steps.size()][];
    for (int i = 0; i < steps.size(); i++) {
      FormulaTape.Step step = steps.get(i);
      if (step.real()) {
        reals[i] = new float[CHUNK / step.run()];
      } else {
        ints[i] = new int[CHUNK / step.run()];
      }
      Runnable made = step.real() ? real(step, reals[i]) : integer(step, ints[i]);
      (step.ofRow() ? ofRow : ofChunk).add(made);
    }
    this.results = reals(what.tape().last(), 1);
  }

  private static MemorySegment memory(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /// Computes on as many threads as there are processors.
  ///
  /// @throws dev.gantry.core.TransferException if the caller cancels
  static void convert(List<Dequantisation.Task> tasks, Cancellation cancellation) {
    List<Piece> pieces = new ArrayList<>();
    tasks.forEach(task -> cut(task, pieces));
    WorkerThreads workers =
        new WorkerThreads(
            "convert", () -> tasks.size() + " tensors", "gantry-convert-", cancellation);
    if (pieces.size() > 1) {
      int threads = Runtime.getRuntime().availableProcessors();
      workers.forEach(threads, pieces, Piece::convert, () -> {});
    } else {
      workers.throwIfCancelled();
      pieces.forEach(Piece::convert);
    }
  }

  /// Rows and columns in a task's box. The rows of all matrices are numbered consecutively.
  private record Piece(
      Dequantisation.Task task, long firstRow, long endRow, long firstColumn, long endColumn) {
    void convert() {
      new HostFormula(task).convert(this);
    }
  }

  private static void cut(Dequantisation.Task task, List<Piece> pieces) {
    Dequantisation.Indexes size = task.what().box().size();
    long columnStep = Math.clamp(size.column(), 1, PIECE_ELEMENTS);
    long rowStep = PIECE_ELEMENTS / columnStep;
    long rows = size.matrix() * size.row();
    for (long row = 0; row < rows; row += rowStep) {
      for (long column = 0; column < size.column(); column += columnStep) {
        pieces.add(
            new Piece(
                task,
                row,
                Math.min(rows, row + rowStep),
                column,
                Math.min(size.column(), column + columnStep)));
      }
    }
  }

  private void convert(Piece piece) {
    Dequantisation.Indexes first = what.box().first();
    Dequantisation.Indexes size = what.box().size();
    int last = (int) (first.column() + piece.endColumn());
    for (column = (int) (first.column() + piece.firstColumn()); column < last; column = end) {
      end = Math.min(last, column / CHUNK * CHUNK + CHUNK);
      ofChunk.forEach(Runnable::run);
      for (long one = piece.firstRow(); one < piece.endRow(); one++) {
        matrix = (int) (first.matrix() + one / size.row());
        row = (int) (first.row() + one % size.row());
        ofRow.forEach(Runnable::run);
        store(one * size.column() + column - first.column(), end - column);
      }
    }
  }

  /// Returns how many runs of this length the chunk has.
  private int count(int run) {
    return (end - 1) / run - column / run + 1;
  }

  private Runnable integer(FormulaTape.Step step, int[] to) {
    int run = step.run();
    return switch (step.formula()) {
      case Formula.Axis axis ->
          switch (axis) {
            case MATRIX -> () -> to[0] = matrix;
            case ROW -> () -> to[0] = row;
            case COLUMN -> () -> FormulaLoops.count(to, column, end - column);
          };
      case Formula.Constant(int value) -> () -> to[0] = value;
      case Formula.Parameter(int number) -> () -> to[0] = what.parameters().get(number);
      case Formula.Binary binary -> {
        int[] left = ints(step, 0);
        int[] right = ints(step, 1);
        yield () -> FormulaLoops.run(binary.operator(), left, right, to, count(run));
      }
      case Formula.Load load -> load(step, load, to);
      case Formula.Lookup lookup -> {
        int[] index = ints(step, 0);
        int[] table = lookup.table().bits();
        yield () -> FormulaLoops.lookUp(table, index, to, count(run));
      }
      case Formula.ToReal _ -> throw new IllegalStateException("an F32 number");
    };
  }

  private Runnable real(FormulaTape.Step step, float[] to) {
    int run = step.run();
    return switch (step.formula()) {
      case Formula.Binary binary -> {
        float[] left = reals(step, 0);
        float[] right = reals(step, 1);
        yield () -> FormulaLoops.run(binary.operator(), left, right, to, count(run));
      }
      case Formula.ToReal real -> {
        int[] from = ints(step, 0);
        yield () -> FormulaLoops.toReal(real.what(), from, to, count(run));
      }
      case Formula.Lookup lookup -> {
        int[] index = ints(step, 0);
        float[] table = FormulaLoops.reals(lookup.table().bits());
        yield () -> FormulaLoops.lookUp(table, index, to, count(run));
      }
      case Formula.Axis _, Formula.Constant _, Formula.Parameter _, Formula.Load _ ->
          throw new IllegalStateException("an integer");
    };
  }

  /// Computes the offset of each run's bytes and loads them. Operands that are the same for all
  /// columns are added once, the others for each run in `offsets`.
  private Runnable load(FormulaTape.Step step, Formula.Load load, int[] to) {
    MemorySegment source = sources.get(load.input());
    Dequantisation.Input input = what.inputs().get(load.input());
    int run = step.run();
    long[] offsets = new long[to.length];
    List<Integer> scalars = new ArrayList<>();
    List<Integer> vectors = new ArrayList<>();
    for (int i = 0; i < step.operands(); i++) {
      (steps.get(step.operand(i)).ofColumn() ? vectors : scalars).add(i);
    }
    boolean changing = vectors.stream().anyMatch(i -> steps.get(step.operand(i)).ofRow());
    for (int i : vectors) {
      int[] index = ints(step, i);
      long stride = i == 0 ? 1 : input.stride(i - 1);
      boolean first = i == vectors.getFirst();
      Runnable sum = () -> FormulaLoops.addScaled(index, stride, offsets, count(run), first);
      (changing ? ofRow : ofChunk).add(sum);
    }
    return () -> {
      long at = -input.start();
      for (int i : scalars) {
        at += Integer.toUnsignedLong(ints[step.operand(i)][0]) * (i == 0 ? 1 : input.stride(i - 1));
      }
      FormulaLoops.load(source, load.bytes(), at, offsets, to, count(run));
    };
  }

  /// Returns an operand's results, converted to the step's length of runs.
  private int[] ints(FormulaTape.Step step, int number) {
    int operand = step.operand(number);
    FormulaTape.Step from = steps.get(operand);
    if (from.run() == step.run()) {
      return ints[operand];
    }
    int[] other = new int[CHUNK / step.run()];
    int[] runs = ints[operand];
    int run = step.run();
    int factor = Math.max(run, from.run()) / Math.min(run, from.run());
    (from.ofRow() ? ofRow : ofChunk)
        .add(
            from.run() > run
                ? () -> FormulaLoops.spread(runs, factor, column / run, other, count(run))
                : () -> FormulaLoops.thin(runs, factor, column / from.run(), other, count(run)));
    return other;
  }

  private float[] reals(FormulaTape.Step step, int number) {
    return reals(step.operand(number), step.run());
  }

  private float[] reals(int operand, int run) {
    FormulaTape.Step from = steps.get(operand);
    if (from.run() == run) {
      return reals[operand];
    }
    float[] spread = new float[CHUNK / run];
    float[] runs = reals[operand];
    int factor = from.run() / run;
    (from.ofRow() ? ofRow : ofChunk)
        .add(() -> FormulaLoops.spread(runs, factor, column / run, spread, count(run)));
    return spread;
  }

  /// Rounds the results of a chunk, and stores them.
  private void store(long element, int count) {
    switch (what.to()) {
      case F32 -> {
        FormulaLoops.toF32(results, bits, count);
        MemorySegment.copy(bits, 0, target, INT, element * Integer.BYTES, count);
      }
      case BF16 -> {
        FormulaLoops.toBf16(results, bits, shorts, count);
        MemorySegment.copy(shorts, 0, target, SHORT, element * Short.BYTES, count);
      }
      default -> {
        FormulaLoops.toF16(results, shorts, count);
        MemorySegment.copy(shorts, 0, target, SHORT, element * Short.BYTES, count);
      }
    }
  }
}
