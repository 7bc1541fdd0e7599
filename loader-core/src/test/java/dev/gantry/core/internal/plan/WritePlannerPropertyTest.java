// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.WritePlan.Piece;
import dev.gantry.core.internal.plan.WritePlan.Write;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.PropertyDefaults;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;

/// The rules for all write plans, for any parts and any request size.
@PropertyDefaults(edgeCases = EdgeCasesMode.NONE)
class WritePlannerPropertyTest {
  /// Lengths of parts: zero, small, at the edges of blocks and requests and beside them, and
  /// larger than memory.
  @Provide
  Arbitrary<List<Long>> parts() {
    Arbitrary<Long> borders =
        Arbitraries.longs()
            .between(1, 40)
            .flatMap(block -> Arbitraries.of(-1L, 0L, 1L).map(by -> block * BLOCK_BYTES + by));
    return Arbitraries.frequencyOf(
            Tuple.of(2, Arbitraries.just(0L)),
            Tuple.of(4, Arbitraries.longs().between(1, 300)),
            Tuple.of(4, borders),
            Tuple.of(1, Arbitraries.longs().between(0, 3_000_000)))
        .list()
        .ofMaxSize(40);
  }

  @Provide
  Arbitrary<Long> requests() {
    return Arbitraries.of(1L, 2L, 3L, 16L, 2048L).map(blocks -> blocks * BLOCK_BYTES);
  }

  private static long sum(List<Long> parts) {
    return parts.stream().mapToLong(Long::longValue).sum();
  }

  @Property
  void everyByteOfEveryPartIsWrittenOnceAndInOrder(
      @ForAll("parts") List<Long> parts, @ForAll("requests") long request) {
    WritePlan plan = WritePlanner.plan(parts, request);
    assertThat(plan.size()).isEqualTo(sum(parts));

    List<Long> starts = new ArrayList<>();
    long start = 0;
    for (long part : parts) {
      starts.add(start);
      start += part;
    }
    long at = 0;
    int part = 0;
    for (Write write : plan.writes()) {
      assertThat(write.offset()).isEqualTo(at);
      for (Piece piece : write.pieces()) {
        assertThat(piece.length()).isPositive();
        assertThat(piece.part()).isGreaterThanOrEqualTo(part);
        part = piece.part();
        assertThat(write.offset() + piece.offset()).as("no gap").isEqualTo(at);
        assertThat(starts.get(part) + piece.partOffset()).as("its place").isEqualTo(at);
        assertThat(piece.partOffset() + piece.length()).isLessThanOrEqualTo(parts.get(part));
        at += piece.length();
      }
      assertThat(at).isEqualTo(write.offset() + write.length());
    }
    assertThat(at).isEqualTo(plan.size());
  }

  @Property
  void writesAreWholeBlocksNoneInTwoOfThem(
      @ForAll("parts") List<Long> parts, @ForAll("requests") long request) {
    WritePlan plan = WritePlanner.plan(parts, request);
    long free = 0;
    for (int i = 0; i < plan.writes().size(); i++) {
      Write write = plan.writes().get(i);
      assertThat(write.offset() % BLOCK_BYTES).isZero();
      assertThat(write.offset()).as("its first block").isGreaterThanOrEqualTo(free);
      assertThat(write.length()).isPositive().isLessThanOrEqualTo(request);
      assertThat(write.paddedLength() % BLOCK_BYTES).isZero();
      assertThat(write.paddedLength() - write.length()).isBetween(0L, BLOCK_BYTES - 1L);
      if (i < plan.writes().size() - 1) {
        assertThat(write.length()).as("only the last is partial").isEqualTo(request);
      }
      free = write.offset() + write.paddedLength();
    }
    assertThat(plan.paddedSize()).isEqualTo(free);
  }

  @Property
  void asFewWritesAsCanBe(@ForAll("parts") List<Long> parts, @ForAll("requests") long request) {
    assertThat(WritePlanner.plan(parts, request).writes())
        .hasSize(Math.toIntExact(Math.ceilDiv(sum(parts), request)));
  }

  @Property
  void emptyPartsChangeNothingButTheNumbering(
      @ForAll("parts") List<Long> parts, @ForAll("requests") long request) {
    List<Long> full = parts.stream().filter(part -> part > 0).toList();
    List<Integer> numbers = new ArrayList<>();
    for (int i = 0; i < parts.size(); i++) {
      if (parts.get(i) > 0) {
        numbers.add(i);
      }
    }
    List<Write> renumbered =
        WritePlanner.plan(full, request).writes().stream()
            .map(write ->
                new Write(
                    write.offset(),
                    write.length(),
                    write.pieces().stream()
                        .map(piece ->
                            new Piece(
                                numbers.get(piece.part()),
                                piece.partOffset(),
                                piece.offset(),
                                piece.length()))
                        .toList()))
            .toList();
    assertThat(WritePlanner.plan(parts, request).writes()).isEqualTo(renumbered);
  }

  @Example
  void filesLargerThanMemory() {
    long tebi = 1L << 40;
    WritePlan plan = WritePlanner.plan(List.of(3L, tebi, 1L), PlanLimits.MAX_REQUEST_BYTES);
    assertThat(plan.size()).isEqualTo(tebi + 4);
    assertThat(plan.writes()).hasSize(1025);
    assertThat(plan.writes().getLast().pieces())
        .containsExactly(new Piece(1, tebi - 3, 0, 3), new Piece(2, 0, 3, 1));
  }

  @Example
  void requestsThatCannotBe() {
    for (long request : List.of(0L, -4096L, 4095L, PlanLimits.MAX_REQUEST_BYTES + 4096)) {
      assertThatThrownBy(() -> WritePlanner.plan(List.of(1L), request))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(String.valueOf(request));
    }
  }
}
