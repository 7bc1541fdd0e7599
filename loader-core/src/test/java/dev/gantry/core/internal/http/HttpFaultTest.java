// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.TransferReport.FileReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Loads from a server that misbehaves: each fault gives one error, and no byte is ever wrong.
@ExtendWith(NoLeaks.class)
@Timeout(60)
@Tag("beside")
class HttpFaultTest {
  private static final int LENGTH = 1_000_003;
  private static final byte[] BYTES = TestFiles.bytes(7, LENGTH);
  private static final int REQUEST = 64 << 10;
  private static final Duration IDLE = Duration.ofMillis(400);

  private final RangeServer server = new RangeServer();
  private GantrySession session = session(Duration.ofSeconds(10));
  private final Location file = server.put("weights.bin", BYTES);

  @AfterEach
  void close() {
    session.close();
    server.close();
  }

  private static GantrySession session(Duration idle) {
    RetryLimits limits = new RetryLimits(3, Duration.ofMillis(10), idle);
    return GantrySession.open(Libc.INSTANCE, List.of(new HttpStore(limits)));
  }

  /// Opens a new session that gives up a request after `idle` without a byte. A short time also
  /// ends good requests on a busy machine.
  private void waitOnly(Duration idle) {
    session.close();
    session = session(idle);
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
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1));
    try (Loaded loaded = session.load(wanted, Device.HOST, options)) {
      byte[] found = new byte[LENGTH];
      MemorySegment target = MemorySegment.ofArray(found);
      loaded.regions().getFirst().copyTo(target);
      assertThat(Arrays.equals(found, BYTES)).isTrue();
      return loaded.report();
    }
  }

  private TransferException failure() {
    TransferException failure = catchThrowableOfType(TransferException.class, this::load);
    assertThat(failure).isNotNull();
    assertThat(failure.getMessage()).contains(file.toString()).contains("offset ");
    return failure;
  }

  /// Answers the first request, which opens the file, correctly, and all others with `answer`.
  private void then(Answer answer) {
    server.answer(number -> number == 0 ? Answer.RIGHT : answer);
  }

  @Test
  void manyRequestsAreUnderWayFromTwoThreads() {
    server.delay(30);
    TransferReport report = load();
    assertThat(server.mostUnderWay()).isBetween(9, 16);
    assertThat(report.bytes(Transport.HOST)).isEqualTo(report.bytes());
    assertThat(report.reads()).isEqualTo(Math.ceilDiv(LENGTH, REQUEST));
    assertThat(report.files())
        .containsExactly(
            new TransferReport.FileReport(file, Transport.HOST, "http files have no descriptor"));
  }

  @ParameterizedTest
  @EnumSource(names = {"WITHOUT_LENGTH", "REDIRECT"})
  void whatServersMayDoIsTaken(Answer answer) {
    server.answerAll(answer);
    assertThat(load().bytes()).isPositive();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "WHOLE_FILE | the server does not serve ranges",
        "HALF | after 3 attempts",
        "HALF_WITHOUT_LENGTH | the answer ended after",
        "ONE_BYTE_MORE | more bytes than it was asked for",
        "OTHER_ETAG | the file changed after it was opened",
        "NO_VALIDATOR | the file changed after it was opened",
        "OTHER_RANGE | the server sent another range",
        "NO_RANGE | Content-Range of the answer must have offsets and the size (was none)",
        "ENCODED | encoded: gzip",
        "NOT_FOUND | status 404",
        "FORBIDDEN | status 403",
        "UNSATISFIABLE | the file ends before this range",
        "UNAVAILABLE | status 503",
        "CLOSED | connection failed",
        "STALLS | bytes came within 400 ms",
        "DRIPS | fewer than 16384 bytes came within 400 ms, after 3 attempts",
        "UNAVAILABLE_FOR_LONG | the server asks to wait 300 s",
        "SILENT | bytes came within 400 ms"
      })
  void aWrongAnswerIsAnError(Answer answer, String reason) {
    if (reason.contains(IDLE.toMillis() + " ms")) {
      waitOnly(IDLE);
    }
    then(answer);
    assertThat(failure().getMessage()).contains(reason);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "WHOLE_FILE | the server does not serve ranges",
        "NO_VALIDATOR | neither a strong ETag nor Last-Modified",
        "NO_RANGE | Content-Range of the answer must have offsets and the size (was none)",
        "NOT_FOUND | status 404",
        "SILENT | bytes came within 400 ms",
        "CLOSED | connection failed"
      })
  void aFileThatCannotBeOpenedIsAnError(Answer answer, String reason) {
    if (reason.contains(IDLE.toMillis() + " ms")) {
      waitOnly(IDLE);
    }
    server.answerAll(answer);
    assertThat(failure().getMessage()).contains(reason);
  }

  @ParameterizedTest
  @EnumSource(names = {"HALF", "HALF_WITHOUT_LENGTH", "UNAVAILABLE", "CLOSED", "STALLS"})
  void whatPassesIsAskedAgain(Answer answer) {
    server.answer(number -> number == 1 || number == 4 ? answer : Answer.RIGHT);
    if (answer == Answer.STALLS) {
      waitOnly(Duration.ofSeconds(1));
    }
    assertThat(load().bytes()).isPositive();
    assertAsked(2);
  }

  /// Checks that requests were repeated. There may be more repeats than the test causes, because a
  /// load also repeats requests that a busy machine answers late.
  ///
  /// @param again how many requests had to be repeated, besides the request that opens the file
  private void assertAsked(int again) {
    assertThat(server.requests()).isGreaterThanOrEqualTo(1 + Math.ceilDiv(LENGTH, REQUEST) + again);
  }

  /// The server stops in mid-answer, and the session would wait longer than the test may take.
  @Test
  void theSlowestRequestIsMadeASecondTime() {
    waitOnly(Duration.ofMinutes(5));
    server.answer(number -> number == 9 ? Answer.STALLS : Answer.RIGHT);
    assertThat(load().bytes()).isPositive();
    assertAsked(1);
  }

  @ParameterizedTest
  @EnumSource(names = {"TOO_MANY", "UNAVAILABLE_UNTIL"})
  void aServerThatAsksForPatienceGetsIt(Answer busy) {
    server.answer(number -> number == 1 ? busy : Answer.RIGHT);
    long start = System.nanoTime();
    assertThat(load().bytes()).isPositive();
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isGreaterThan(Duration.ofMillis(900));
  }

  @Test
  void aFileThatChangesInMidLoadIsAnError() {
    server.answer(number -> {
      if (number == 5) {
        Location _ = server.put("weights.bin", TestFiles.bytes(8, LENGTH));
        // From now on the server answers with status 200 and the whole new file, as `If-Range`
        // demands.
      }
      return Answer.RIGHT;
    });
    assertThat(failure().getMessage()).contains("the file changed after it was opened");
  }

  /// A hub's link to its content server expires; the load asks the hub for a new link.
  @Test
  void anExpiredRedirectIsFollowedAnew() {
    server.answer(number -> number == 3 ? Answer.FORBIDDEN : Answer.REDIRECT);
    assertThat(load().bytes()).isPositive();
  }

  /// A slow request has a second attempt beside it; both find that the link has expired, the second
  /// when the hub is already asked for a new link.
  @Test
  void aRedirectThatExpiresForBothAttemptsOfARequestIsFollowedAnew() throws Exception {
    server.answerAll(Answer.REDIRECT);
    CountDownLatch both = new CountDownLatch(2);
    CountDownLatch anew = new CountDownLatch(1);
    try (HttpStore store = new HttpStore()) {
      StoredFile opened = store.open(file, CachePolicy.BUFFERED);
      HedgedRead warm = new HedgedRead();
      opened.read(warm);
      assertThat(warm.end.get()).isEmpty();
      server.answer(number -> {
        switch (number) {
          case 0 -> {
            both.countDown();
            Latches.await(both);
          }
          case 1 -> {
            both.countDown();
            Latches.await(anew);
          }
          case 2 -> {
            anew.countDown();
            Latches.awaitThat(() -> attempts() <= 1);
          }
          default -> {}
        }
        return number < 2 ? Answer.FORBIDDEN : Answer.REDIRECT;
      });
      HedgedRead read = new HedgedRead();
      opened.read(read);
      Latches.awaitThat(() -> server.requests() == 1);
      read.hedge.run();
      assertThat(read.end.get()).isEmpty();
    }
  }

  private static long attempts() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("gantry-http-"))
        .count();
  }

  /// A read whose second attempt begins when the test says so.
  private static final class HedgedRead extends ReadRequest {
    private final CompletableFuture<Optional<Throwable>> end = new CompletableFuture<>();
    private Runnable hedge = () -> {};

    HedgedRead() {
      super(Arena.ofAuto().allocate(REQUEST), 0, new Cancellation());
    }

    @Override
    public void whenSlow(Runnable action) {
      hedge = action;
    }

    @Override
    public void completed() {
      end.complete(Optional.empty());
    }

    @Override
    public void failed(Throwable reason) {
      end.complete(Optional.of(reason));
    }
  }

  @Test
  void cancellationEndsRequestsThatHang() throws Exception {
    then(Answer.SILENT);
    Cancellation cancellation = new Cancellation();
    try (GantrySession patient = GantrySession.open(Libc.INSTANCE)) {
      List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1));
      CompletableFuture<Throwable> ended =
          CompletableFuture.supplyAsync(() ->
              catchThrowableOfType(
                  TransferException.class,
                  () ->
                      patient
                          .load(wanted, Device.HOST, options().withCancellation(cancellation))
                          .close()));
      Latches.awaitThat(() -> server.requests() >= 3);
      cancellation.cancel();
      assertThat(ended.get(10, TimeUnit.SECONDS))
          .isInstanceOfSatisfying(
              TransferException.class,
              e -> assertThat(e.failure()).isEqualTo(new Failure.Cancelled()));
    }
  }

  /// Repeated requests start on the threads of the common pool, all of which these loads occupy.
  @Test
  void loadsMayTakeAllThreadsOfTheCommonPool() {
    List<CompletableFuture<TransferReport>> loads =
        IntStream.range(0, ForkJoinPool.getCommonPoolParallelism())
            .mapToObj(_ -> CompletableFuture.supplyAsync(this::load))
            .toList();
    assertThat(loads).allSatisfy(load -> assertThat(load.join().bytes()).isPositive());
  }

  @Test
  void aServerThatIsNotThereIsAnErrorAtOnce() {
    server.close();
    assertThat(failure().getMessage())
        .contains("http://")
        .endsWith(" was not reached: Connection refused");
  }

  @Test
  void aServerThatIsGoneAfterItsFirstAnswerIsAskedAgain() {
    try (SourceFile opened = session.openFile(file);
        Arena arena = Arena.ofConfined()) {
      server.close();
      assertThatThrownBy(() -> opened.read(arena.allocate(1), 0, 1, false))
          .hasMessageContaining("connection failed: Connection refused, after 3 attempts");
    }
  }

  @Test
  void remoteFilesAreNotMapped() {
    assertThatThrownBy(
            () -> session.map(List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1))).close())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("http files have no descriptor");
  }

  @Test
  void aUserNameInAUrlIsMisuse() {
    Location named = Location.of("https://user:word@host/weights.bin");
    assertThatThrownBy(() -> session.openFile(named).close())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("without a user name");
  }

  @Test
  void aPortThatDoesNotExistIsMisuse() {
    Location named = Location.of("http://host:65536/weights.bin");
    assertThatThrownBy(() -> session.openFile(named).close())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("must be a URL with a host, a port up to 65535 or none");
  }

  @Test
  void aSchemeThatNoStoreServesIsMisuse() {
    assertThatThrownBy(() -> session.openFile(Location.of("gopher://host/file")).close())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("no store serves gopher files")
        .hasMessageEndingWith("]");
    assertThatThrownBy(() -> session.openFile(Location.of("s3://bucket/key")).close())
        .isInstanceOf(MisuseException.class)
        .hasMessageEndingWith("]; the module loader-s3 does");
  }

  private List<ExtentRequest> wantedOf(String... names) {
    return Stream.of(names)
        .map(name -> new ExtentRequest(new Extent(server.put(name, BYTES), 0, LENGTH), 1))
        .toList();
  }

  /// The server holds its answers back until all files were asked for.
  @Test
  void filesAreOpenedAtTheSameTime() {
    List<ExtentRequest> wanted = wantedOf("one", "two", "three", "four", "five");
    CountDownLatch asked = new CountDownLatch(wanted.size());
    server.answer(number -> {
      asked.countDown();
      if (number < wanted.size()) {
        Latches.await(asked);
      }
      return Answer.RIGHT;
    });
    try (Loaded loaded = session.load(wanted, Device.HOST, options())) {
      assertThat(loaded.report().files())
          .extracting(FileReport::file)
          .containsExactlyElementsOf(wanted.stream().map(one -> one.extent().file()).toList());
    }
  }

  @Test
  void aCancellationEndsTheOpeningOfFiles() {
    waitOnly(Duration.ofMinutes(5));
    Cancellation cancellation = new Cancellation();
    List<ExtentRequest> wanted = wantedOf("one", "two", "three");
    server.answer(number -> {
      if (number == 2) {
        cancellation.cancel();
      }
      return Answer.SILENT;
    });
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () -> session.load(wanted, Device.HOST, options().withCancellation(cancellation)));
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    assertThat(server.requests()).isEqualTo(3);
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
  }

  /// Otherwise the load would wait for the openings that get no answer.
  @Test
  void aFileThatCannotBeOpenedEndsTheOpeningOfTheOthers() {
    waitOnly(Duration.ofMinutes(5));
    List<ExtentRequest> wanted = wantedOf("one", "two", "three");
    server.answer(number -> number == 2 ? Answer.NOT_FOUND : Answer.SILENT);
    TransferException failure =
        catchThrowableOfType(
            TransferException.class, () -> session.load(wanted, Device.HOST, options()));
    assertThat(failure.isNotFound()).isTrue();
  }
}
