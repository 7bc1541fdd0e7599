// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Writes samples as raw tensor shards. An append copies its samples at once into the columns of the
/// current shard; a full shard is written in the background while the next one is filled. The dataset
/// exists when [#finish] returns, not before: a crash leaves a folder without `shards.json`, which readers
/// refuse and the next writer clears. Other programs' files there stay.
///
/// Its memory is bounded by (writers + 1) · (size of a full shard), outside of the heap, and by two buffers
/// of [a request's size][dev.gantry.core.internal.commit.WriteOptions#requestBytes] for each thread that
/// writes. While all of this memory is in use, an append waits.
///
/// When a background write fails, the next [#append] or [#finish] throws the failure, once; after that the
/// writer can only be closed, as after any other failure. But if an append refuses its samples with a
/// [MisuseException], none of them is appended, and the writer can be used further.
///
/// For one thread at a time. Other writers of its folder are refused meanwhile.
public final class ShardWriter implements AutoCloseable {
  private enum State {
    OPEN("is open"),
    FAILED("has failed"),
    FINISHED("is finished"),
    CLOSED("is closed");

    final String word;

    State(String word) {
      this.word = word;
    }
  }

  /// Finishes or removes the shards once all of them are written.
  interface Output {
    /// Makes the shards a set.
    void finish(ShardSet set, WriteOptions options);

    /// Removes the written shards.
    void takeBack();
  }

  private static final Logger LOG = LoggerFactory.getLogger(ShardWriter.class);

  private final GantrySession session;
  private final NewShardSet plan;
  private final Output output;
  private final ShardQueue queue;

  /// The work of [#close]; made early, since a full heap must not keep the folder's lock.
  private final List<Runnable> closing;

  private State state = State.OPEN;

  /// How many shards have been begun.
  private int shards;

  /// The shard that is being filled; null between two shards.
  private @Nullable ShardColumns columns;

  ShardWriter(GantrySession session, NewShardSet plan, Output output) {
    this.session = session;
    this.plan = plan;
    this.output = output;
    queue = new ShardQueue(plan.options().writers, plan.capacity().bytes());
    closing = List.of(queue::abandon, output::takeBack);
  }

  /// Makes a writer as [#create(Session, Path, List, ShardOptions)] does, with the process's shared
  /// session.
  public static ShardWriter create(Path folder, List<Field> fields, ShardOptions options) {
    return create(GantrySession.shared(), folder, fields, options);
  }

  /// Makes a writer. The folder and its parents are made where they are missing; files that an unfinished
  /// writer left there are removed.
  ///
  /// @param session must stay open until this is closed
  /// @param fields the fields, in the order of their bytes
  /// @throws MisuseException if the folder holds a `shards.json`, or a file that is named like a shard and
  ///     belongs to no unfinished set; if another writer is at work there; if no reader would accept the
  ///     fields or options
  /// @throws TransferException if the folder cannot be made, read or cleared
  public static ShardWriter create(
      Session session, Path folder, List<Field> fields, ShardOptions options) {
    GantrySession own = GantrySession.of(session);
    NewShardSet plan = NewShardSet.of(folder, fields, options);
    return new ShardWriter(own, plan, ShardFolder.prepare(own, folder, false));
  }

  /// Writes whole arrays as a dataset, and returns when it is on the disk. A failure leaves nothing; a
  /// crash may leave files that the next writer clears.
  ///
  /// @param samples how many samples there are, 0 or more
  /// @param values as [#append(long, Map)] takes them
  /// @throws MisuseException as [#create] and [#append(long, Map)] throw it
  /// @throws TransferException if a file or device fails, or the caller cancels
  public static ShardSet write(
      Session session,
      Path folder,
      List<Field> fields,
      long samples,
      Map<String, Source> values,
      ShardOptions options) {
    try (ShardWriter writer = create(session, folder, fields, options)) {
      writer.append(samples, values);
      return writer.finish();
    }
  }

  /// How many samples each shard gets, except the last.
  public long samplesPerShard() {
    return plan.capacity().samples();
  }

  /// Appends one sample.
  ///
  /// @param sample the value of each field by its name, little endian, in C order. A segment over a Java
  ///     array ([MemorySegment#ofArray(float[])]) must be of the field's type, or of bytes
  /// @throws MisuseException if a field is missing or unknown, a value has a wrong size or is an array of
  ///     another type, or the index has no room for another shard
  /// @throws TransferException if a background write failed, or the caller is interrupted while it
  ///     waits for one
  public void append(Map<String, MemorySegment> sample) {
    requireOpen();
    plan.checkNames(sample);
    for (Field field : plan.fields()) {
      MemorySegment value = Objects.requireNonNull(sample.get(field.name()));
      NewShardSet.checkValue(field, value);
    }
    if (columns == null) {
      plan.requireRoom(shards);
    }
    orFail(() -> {
      current().add(sample);
      submitIfFull();
    });
  }

  /// Appends some samples from files or any memory, after all work that was queued on their devices before.
  /// When this returns, their memory may change.
  ///
  /// @param count 0 or more
  /// @param values each field's values by its name: those of all samples end to end, little endian, in C
  ///     order
  /// @throws MisuseException as [#append(Map)] throws it
  /// @throws TransferException as [#append(Map)] throws it, or if a file or device fails
  public void append(long count, Map<String, Source> values) {
    requireOpen();
    MisuseException.requireRange("append: count", count, 0, Long.MAX_VALUE);
    plan.checkNames(values);
    for (Field field : plan.fields()) {
      Source value = Objects.requireNonNull(values.get(field.name()));
      NewShardSet.checkValues(field, count, value);
    }
    long room = columns == null ? 0 : columns.room();
    if (count > room) {
      long more = (count - room - 1) / samplesPerShard();
      plan.requireRoom(shards + Math.min(more, ShardSet.MAX_SHARDS));
    }
    orFail(() -> {
      for (long done = 0; done < count; ) {
        ShardColumns into = current();
        long step = Math.min(into.room(), count - done);
        into.add(session, values, done, step);
        done += step;
        submitIfFull();
      }
    });
  }

  private ShardColumns current() {
    queue.throwFailure();
    ShardColumns current = columns;
    if (current == null) {
      current = new ShardColumns(plan.fields(), plan.capacity(), queue.take());
      columns = current;
      shards++;
    }
    return current;
  }

  private void submitIfFull() {
    if (columns != null && columns.room() == 0) {
      submit(columns);
    }
  }

  private void submit(ShardColumns full) {
    int number = shards - 1;
    queue.submit(number, full.slab(), () -> write(number, full));
    columns = null;
  }

  private Shard write(int number, ShardColumns full) {
    NewFile file = plan.file(number, full.contents());
    WriteOptions asked = plan.options().write;
    // One thread for each shard is enough, since several shards are written at once.
    WriteOptions options = asked.threads() == 0 ? asked.withThreads(1) : asked;
    return plan.shard(
        file, full.layout(), session.write(List.of(file), options).files().getFirst());
  }

  /// Waits until all shards are on the disk, and puts the index into its place.
  ///
  /// @return the set as readers will find it
  /// @throws TransferException if a write failed. The dataset does not exist then, unless only the folder's
  ///     last `fsync` failed; [#close] removes the written files
  public ShardSet finish() {
    requireOpen();
    state = State.FAILED;
    if (columns != null) {
      submit(columns);
    }
    ShardSet set = plan.set(queue.finish());
    output.finish(set, plan.options().write);
    state = State.FINISHED;
    return set;
  }

  private void requireOpen() {
    if (state != State.OPEN) {
      throw new MisuseException("this writer of " + plan.folder() + " " + state.word);
    }
  }

  private void orFail(Runnable step) {
    State before = state;
    state = State.FAILED;
    step.run();
    state = before;
  }

  /// Does nothing after [#finish]. Before it, removes all written files and the folders that were made for
  /// them, and logs a warning unless something had failed. Idempotent.
  ///
  /// @throws TransferException if something could not be removed
  @Override
  public void close() {
    State before = state;
    state = State.CLOSED;
    switch (before) {
      case FINISHED, CLOSED -> {}
      case OPEN, FAILED -> {
        if (before == State.OPEN) {
          LOG.warn("{}: closed without finish(), so nothing of it stays", plan.folder());
        }
        Cleanup.runAll(closing);
      }
    }
  }
}
