// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Fault;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Returns;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Writers in which each call fails in each way leave the complete set or none, and no file that
/// stops the next writer.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class ShardFaultTest {
  private static final int SAMPLES = 7;

  /// The calls that are repeated after `EINTR`. A call that always fails with it would be repeated
  /// for ever.
  private static final Set<Function> RETRIED =
      EnumSet.of(
          Function.OPEN, Function.PREAD, Function.PWRITE, Function.FTRUNCATE, Function.FALLOCATE);

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  private final GantrySession good = GantrySession.open();
  private final Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 1, SAMPLES);

  @AfterEach
  void close() {
    good.close();
  }

  private Path folder() {
    return parent.resolve("set");
  }

  private void append(GantrySession session) {
    try (ShardWriter writer =
        ShardWriter.create(session, folder(), TestShards.FIELDS, TestShards.options())) {
      TestShards.append(writer, values, SAMPLES);
      writer.finish();
    }
  }

  private void writeArrays(GantrySession session) {
    ShardWriter.write(
        session,
        folder(),
        TestShards.FIELDS,
        SAMPLES,
        TestShards.sources(TestShards.FIELDS, values, 0, SAMPLES),
        TestShards.options());
  }

  @ParameterizedTest
  @EnumSource
  void everyCallOfAWriter(Function function) {
    everyCall(function, this::append);
  }

  @ParameterizedTest
  @EnumSource
  void everyCallOfAWriteOfArrays(Function function) {
    everyCall(function, this::writeArrays);
  }

  private void everyCall(Function function, Consumer<GantrySession> write) {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    leftovers();
    run(calls, write);
    TestShards.requireWhole(folder(), TestShards.FIELDS, values, SAMPLES, "");
    for (int number = 1; number <= calls.count(function); number++) {
      for (Fault fault :
          List.of(new Fails(Errno.EIO), new Fails(Errno.ENOSPC), new Fails(Errno.EINTR))) {
        tryOut(function, number, fault, false, write);
        tryOut(function, number, fault, true, write);
      }
      if (function == Function.PWRITE) {
        tryOut(function, number, new Shortens(1000), false, write);
        tryOut(function, number, new Shortens(1000), true, write);
        tryOut(function, number, new Returns(1000), true, write);
      }
    }
  }

  /// Makes files of an earlier writer, which must be removed under the same faults.
  private void leftovers() {
    MemoryFolder.delete(folder());
    try {
      Path left = Files.createDirectories(folder().resolve(".gantry-unfinished"));
      Files.write(left.resolve("shard-00001.bin"), new byte[100]);
      Files.write(left.resolve("shard-00009.bin"), new byte[100]);
      Files.write(left.resolve(".gantry-0123456789abcdef.tmp"), new byte[100]);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void run(FaultyFileCalls calls, Consumer<GantrySession> write) {
    try (GantrySession session = Sessions.over(calls)) {
      write.accept(session);
    }
  }

  private void tryOut(
      Function function, int number, Fault fault, boolean forGood, Consumer<GantrySession> write) {
    String where = function + " " + number + " " + fault + (forGood ? " from then on" : " once");
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    if (!forGood) {
      calls.at(function, number, fault);
    } else if (!fault.equals(new Fails(Errno.EINTR)) || !RETRIED.contains(function)) {
      calls.from(function, number, fault);
    } else {
      for (int again = 0; again < 9; again++) {
        calls.at(function, number + again, fault);
      }
    }
    leftovers();
    TransferException failure =
        catchThrowableOfType(TransferException.class, () -> run(calls, write));
    requireAfter(failure, fault, where);
  }

  private void requireAfter(@Nullable TransferException failure, Fault fault, String where) {
    Optional<ShardSet> present = TestShards.present(folder());
    assertThat(NoLeaks.held()).as(where).isEqualTo(LiveResources.Snapshot.NOTHING);
    try {
      assertThat(NoLeaks.openFiles()).as(where).isEmpty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    if (failure == null) {
      assertThat(present).as(where).isPresent();
    } else {
      assertThat(fault).as(where).isInstanceOf(Fails.class);
      assertThat(failure.failure())
          .as(where)
          .isEqualTo(Errno.failure(((Fails) fault).errno().code()));
    }
    if (present.isPresent()) {
      TestShards.requireWhole(folder(), TestShards.FIELDS, values, SAMPLES, where);
    } else {
      append(good);
      TestShards.requireWhole(folder(), TestShards.FIELDS, values, SAMPLES, where);
      assertThat(TestShards.names(folder()))
          .as(where)
          .containsExactly("shard-00000.bin", "shard-00001.bin", "shard-00002.bin", "shards.json");
    }
  }
}
