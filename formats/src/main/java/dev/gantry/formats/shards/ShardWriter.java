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

/// Writes samples as raw tensor shards. What is appended is copied at once, into the columns of the
/// shard in progress; a full shard is written in the background while the next is filled. The
/// dataset is there when [#finish] returns, and not before: a crash leaves a folder without
/// `shards.json`, which readers refuse and the next writer clears. What others have put there stays.
///
/// Its memory is bounded by (writers + 1) · (size of a full shard), outside of the heap, and by two
/// buffers of [a request's size][dev.gantry.core.internal.commit.WriteOptions#requestBytes] for each thread
/// that writes. Where the memory is all in use, an append waits.
///
/// When a background write fails, the next [#append] or [#finish] throws what it failed with, once;
/// from then on the writer can only be closed. So it is after any other failure, but not after what
/// was wrong with the samples themselves: of those none is appended, and the writer goes on.
///
/// For one thread at a time. While it is at work other writers of its folder are refused.
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

  /// What becomes of the shards when all of them are written.
  interface Output {
    /// Makes them a set.
    void finish(ShardSet set, WriteOptions options);

    /// Removes what was written.
    void takeBack();
  }

  private static final Logger LOG = LoggerFactory.getLogger(ShardWriter.class);

  private final GantrySession session;
  private final NewShardSet plan;
  private final Output output;
  private final ShardQueue queue;
  private State state = State.OPEN;

  /// How many shards have been begun.
  private int shards;

  /// The shard in progress; null between two.
  private @Nullable ShardColumns columns;

  ShardWriter(GantrySession session, NewShardSet plan, Output output) {
    this.session = session;
    this.plan = plan;
    this.output = output;
    queue = new ShardQueue(plan.options().writers(), plan.capacity().bytes());
  }

  /// As [#create(Session, Path, List, ShardOptions)], with the process's shared session.
  public static ShardWriter create(Path folder, List<Field> fields, ShardOptions options) {
    return create(GantrySession.shared(), folder, fields, options);
  }

  /// Makes the folder where it is missing, and those above it, and removes from it what a writer
  /// left that did not finish.
  ///
  /// @param session which must stay open for as long as this
  /// @param fields in the order of their bytes
  /// @throws MisuseException if the folder holds a `shards.json`, or a file named like a shard that
  ///     no unfinished set tells of; if another writer is at work there; if the fields or options
  ///     are such that no reader would read them
  /// @throws TransferException if the folder cannot be made, read or cleared
  public static ShardWriter create(
      Session session, Path folder, List<Field> fields, ShardOptions options) {
    GantrySession own = GantrySession.of(session);
    NewShardSet plan = NewShardSet.of(folder, fields, options);
    return new ShardWriter(own, plan, ShardFolder.prepare(own, folder, false));
  }

  /// Writes whole arrays, and returns when the dataset is there. A failure leaves none; a crash may leave what the
  /// next writer clears.
  ///
  /// @param samples how many there are, 0 or more
  /// @param values as [#append(long, Map)] takes them
  /// @throws MisuseException as [#create] and [#append(long, Map)] have it
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

  /// How many samples each shard gets, but for the last.
  public long samplesPerShard() {
    return plan.capacity().samples();
  }

  /// Appends one sample.
  ///
  /// @param sample the value of each field by its name, little endian, in C order. Arrays are
  ///     [MemorySegment#ofArray(float[])] and the like, of the field's own type; bytes may be any
  /// @throws MisuseException if a field is missing or unknown, a value is of another size or from an
  ///     array of another type, or there is no room for another shard
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

  /// Appends some samples, from wherever they are. Whatever was queued on a device before comes
  /// first. They may change when this returns.
  ///
  /// @param count 0 or more
  /// @param values of each field by its name: those of all samples end to end, little endian, in C
  ///     order
  /// @throws MisuseException as [#append(Map)] has it
  /// @throws TransferException also if a file or device fails
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
    WriteOptions asked = plan.options().write();
    // Shards are written beside each other already.
    WriteOptions options = asked.threads() == 0 ? asked.withThreads(1) : asked;
    return plan.shard(
        file, full.layout(), session.write(List.of(file), options).files().getFirst());
  }

  /// Waits until all shards are on the disk, and puts the index into its place.
  ///
  /// @return what readers will find
  /// @throws TransferException if a write failed: the dataset is not there then, unless the failure
  ///     is of the folder's synchronisation after the index has its name; [#close] removes it
  public ShardSet finish() {
    requireOpen();
    state = State.FAILED;
    if (columns != null) {
      submit(columns);
    }
    ShardSet set = plan.set(queue.finish());
    output.finish(set, plan.options().write());
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

  /// After [#finish] nothing; else removes all that was written, and the folders that were made for
  /// this, and logs a warning where nothing had failed. Idempotent.
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
        Cleanup.runAll(List.of(queue::abandon, output::takeBack));
      }
    }
  }
}
