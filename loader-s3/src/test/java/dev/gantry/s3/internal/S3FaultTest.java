// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.s3.testing.FaultProxy;
import dev.gantry.s3.testing.FaultProxy.Answer;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Tests loads from an S3 server whose answers are damaged. Requests are repeated, or the load
/// fails with one error; no load returns a wrong byte.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class S3FaultTest {
  private static final int LENGTH = 1_000_003;
  private static final byte[] BYTES = TestFiles.bytes(7, LENGTH);
  private static final int REQUEST = 64 << 10;

  private final S3Server server = S3Server.inMemory();
  private final FaultProxy proxy = new FaultProxy(server.endpoint());
  private final GantrySession session;
  private final Location file = server.put("weights.bin", BYTES);

  S3FaultTest() {
    server.pointAt(proxy.endpoint());
    S3Settings settings =
        new S3Settings(new RetryLimits(4, Duration.ofMillis(10), Duration.ofSeconds(2)));
    session = GantrySession.open(Libc.INSTANCE, List.of(new S3Store(settings)));
  }

  @AfterEach
  void close() {
    session.close();
    proxy.close();
    server.close();
  }

  @Test
  void theCrtTakesNoLessThanTwoSecondsWithoutAByte() {
    assertThatThrownBy(
            () -> new S3Settings(new RetryLimits(4, Duration.ofMillis(10), Duration.ofSeconds(1))))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("idle seconds must be 2");
  }

  private static TransferOptions options() {
    return TransferOptions.defaults()
        .withLimits(PlanLimits.DEFAULT.withRequestBytes(REQUEST))
        .withThreads(2);
  }

  private TransferReport load() {
    return load(options());
  }

  private TransferReport load(TransferOptions options) {
    return load(session, options);
  }

  private TransferReport load(GantrySession session, TransferOptions options) {
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1));
    try (Loaded loaded = session.load(wanted, Device.HOST, options)) {
      byte[] found = new byte[LENGTH];
      loaded.regions().getFirst().copyTo(MemorySegment.ofArray(found));
      assertThat(Arrays.equals(found, BYTES)).isTrue();
      return loaded.report();
    }
  }

  private TransferException failure() {
    TransferException failure = catchThrowableOfType(TransferException.class, this::load);
    assertThat(failure).isNotNull();
    assertThat(failure.getMessage())
        .contains(file.toString())
        .doesNotContain("\n")
        .doesNotContain("test-user")
        .doesNotContain("test-secret");
    return failure;
  }

  @Test
  void aReportNamesTheTransport() {
    TransferReport report = load();
    assertThat(report.bytes(Transport.HOST)).isEqualTo(report.bytes());
    assertThat(report.files())
        .containsExactly(
            new TransferReport.FileReport(file, Transport.HOST, "s3 files have no descriptor"));
    assertAsked(0);
  }

  /// Requires at least the requests of a load and some repeated ones. There may be more, because
  /// a load repeats the requests that a busy machine answers very late.
  ///
  /// @param again the number of requests that had to be repeated
  private void assertAsked(int again) {
    assertThat(proxy.ranges()).isGreaterThanOrEqualTo(Math.ceilDiv(LENGTH, REQUEST) + again);
  }

  @ParameterizedTest
  @EnumSource(names = {"CUT", "RESET", "SLOW_DOWN", "INTERNAL_ERROR", "STALLED", "DRIPS"})
  void aFaultThatPassesIsTriedAgain(Answer answer) {
    proxy.answer(number -> number == 5 || number == 9 ? answer : Answer.RIGHT);
    load();
    assertAsked(2);
  }

  /// The server stalls one answer for longer than the test may take.
  @Test
  void theSlowestRequestIsMadeASecondTime() {
    S3Settings patient =
        new S3Settings(new RetryLimits(4, Duration.ofMillis(10), Duration.ofMinutes(5)));
    proxy.answer(number -> number == 9 ? Answer.STALLED : Answer.RIGHT);
    try (GantrySession session = GantrySession.open(Libc.INSTANCE, List.of(new S3Store(patient)))) {
      load(session, options());
    }
    assertAsked(1);
  }

  @Test
  void aServerThatAsksForPatienceGetsIt() {
    // The duration is longer than the CRT client waits before it repeats a request by itself.
    Duration busy = Duration.ofMillis(600);
    AtomicLong first = new AtomicLong();
    proxy.answer(_ -> {
      first.compareAndSet(0, System.nanoTime());
      return System.nanoTime() - first.get() < busy.toNanos() ? Answer.BUSY : Answer.RIGHT;
    });
    load();
    assertThat(Duration.ofNanos(System.nanoTime() - first.get()))
        .isGreaterThan(Duration.ofMillis(900));
  }

  @Test
  void aStormOfRefusalsPasses() {
    proxy.answer(number -> number < 12 ? Answer.SLOW_DOWN : Answer.RIGHT);
    load();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "SLOW_DOWN|503|Response code indicates throttling (AWS_ERROR_S3_SLOW_DOWN), after 4"
            + " attempts",
        "INTERNAL_ERROR|500|Response code indicates internal server error"
            + " (AWS_ERROR_S3_INTERNAL_ERROR), after 4 attempts",
        "EXPIRED|400|the credentials have expired; renew them (ExpiredToken)",
        "DENIED|403|AccessDenied",
        "GONE|404|no such object or bucket (NoSuchKey); the name of a folder ends with '/'"
      })
  void aRefusalIsOneError(Answer answer, int status, String reason) {
    proxy.answer(_ -> answer);
    TransferException failure = failure();
    assertThat(failure.failure()).isEqualTo(new Failure.Remote(status, reason));
    assertThat(failure.getMessage()).contains("offset ");
  }

  @ParameterizedTest
  @EnumSource(names = {"CUT", "RESET", "SHORT", "OTHER_RANGE", "WHOLE"})
  void aWrongAnswerIsOneError(Answer answer) {
    proxy.answer(_ -> answer);
    assertThat(failure().getMessage()).contains("offset ");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 7, 15})
  void anObjectThatChangesMeanwhileIsAnError(int request) {
    proxy.answer(number -> {
      if (number == request) {
        server.put("weights.bin", TestFiles.bytes(8, LENGTH));
      }
      return Answer.RIGHT;
    });
    TransferException failure = catchThrowableOfType(TransferException.class, this::load);
    // The load succeeds if the object changed before it was opened, or after its last byte was
    // read.
    if (failure != null) {
      assertThat(failure.getMessage()).contains("the file changed after it was opened");
    }
  }

  @Test
  void aLoadIsCancelledWhileTheServerStalls() throws Exception {
    proxy.answer(_ -> Answer.STALLED);
    Cancellation cancellation = new Cancellation();
    CompletableFuture<Throwable> end =
        CompletableFuture.supplyAsync(() ->
            catchThrowableOfType(
                TransferException.class, () -> load(options().withCancellation(cancellation))));
    while (proxy.ranges() < 2) {
      // Without this check, the loop would not end if the load failed before its second request.
      assertThat(end).isNotDone();
      Thread.onSpinWait();
    }
    cancellation.cancel();
    assertThat(((TransferException) end.get(30, TimeUnit.SECONDS)).failure())
        .isEqualTo(new Failure.Cancelled());
  }

  @Test
  void wrongCredentialsAreOneLine() {
    server.set("aws.secretAccessKey", "not-the-secret");
    assertThat(failure().failure())
        .isEqualTo(
            new Failure.Remote(
                403, "Forbidden: the credentials do not allow this, or the object does not exist"));
  }

  @Test
  void missingObjectsAndBucketsAreNotFound() {
    assertThat(failureOf("s3://bucket/none"))
        .contains("HEAD failed: s3://bucket/none: status 404: ");
    assertThat(failureOf("s3://none/none")).contains("status 404: ");
  }

  private String failureOf(String location) {
    return catchThrowableOfType(
            TransferException.class, () -> session.openFile(Location.of(location)).close())
        .getMessage();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "s3://bucket",
        "s3://bucket/",
        "s3://bucket/folder/",
        "s3://bucket/a?b",
        "s3:///key",
        "s3://u:p@bucket/key"
      })
  void aNameThatIsNoObjectIsMisuse(String location) {
    assertThatThrownBy(() -> session.openFile(Location.of(location)).close())
        .isInstanceOf(MisuseException.class)
        .message()
        .doesNotContain("u:p");
  }

  @Test
  void keysOfAllCharactersAreRead() {
    for (String key :
        List.of(
            "with%20space", "a+b", "sum%3Dx%26y", "%C3%A4/%E6%96%87", "per%25cent", "a~b(c)'!*")) {
      Location name = Location.of("s3://bucket/" + key);
      server.put(((Location.Remote) name).uri().getPath().substring(1), new byte[] {1, 2, 3});
      try (SourceFile opened = session.openFile(name)) {
        byte[] read = new byte[3];
        assertThat(opened.size()).isEqualTo(3);
        try (Arena arena = Arena.ofShared()) {
          MemorySegment target = arena.allocate(3);
          boolean _ = opened.read(target, 0, 3, false);
          MemorySegment.copy(target, 0, MemorySegment.ofArray(read), 0, 3);
        }
        assertThat(read).containsExactly(1, 2, 3);
      }
    }
  }

  @Test
  void aFolderIsListed() {
    for (String key : List.of("f/a", "f/b c", "f/", "f/sub/d", "other")) {
      server.put(key, new byte[] {1});
    }
    assertThat(session.list((Location.Remote) Location.of("s3://bucket/f")))
        .hasValue(List.of(Location.of("s3://bucket/f/a"), Location.of("s3://bucket/f/b%20c")));
    assertThat(session.list((Location.Remote) Location.of("s3://bucket/none/")))
        .hasValue(List.of());
  }

  @Test
  void aReadAfterItsSessionWasClosedEnds() {
    try (SourceFile open = session.openFile(file);
        Arena arena = Arena.ofShared()) {
      session.close();
      MemorySegment target = arena.allocate(100);
      assertThatThrownBy(() -> open.read(target, 5, 100, false))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining(file + " offset 5 length 100");
    }
  }
}
