//! Interprets the header row of a table.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::cells::{cells, inner_cells};
use crate::{
    Delimiter,
    encoding::{Decoder, has_escape},
    read::{
        field::{FIELDS, Field, FieldName, Index, Rule},
        nbib, wos,
    },
    split::lines::unmarked,
    work::spend,
};

/// Column names in lower case, letters and digits only.
#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &[
        "title", "titles", "ti", "primarytitle", "titleprimary", "documenttitle", "articletitle", "itemtitle",
        "papertitle", "studytitle", "scientifictitle", "publictitle", "officialtitle", "brieftitle", "recordtitle",
        "worktitle", "titleofthetrial", "trialtitle", "fulltitle", "displayname", "dctitle", "titel", "titre", "título", "titulo", "titolo", "tytuł", "başlık",
        "foreigntitle", "题名", "标题", "篇名", "文献标题", "中文标题", "论文题名", "论文标题", "題名", "論文タイトル", "文献タイトル", "論文名", "タイトル", "標題", "論題", "来源篇名", "표제", "제목", "논문명", "논문제목", "название", "заглавие", "названиестатьи", "названиепубликации", "研究题目", "注册题目", "研究名称", "文献题名", "题目", "назва", "tittel", "název", "naslov", "judul", "otsikko", "cím", "titlu", "τίτλος", "العنوان", "عنوان",
        "publictitleofstudy", "scientifictitleofstudy", "títulodelartículo", "títulodoartigo", "titredelarticle", "títulopúblico",
        "títulocientífico", "artikeltitel", "makalebaşlığı", "tytułartykułu", "研究の名称", "平易な研究名称",
        "試験名", "연구제목", "عنوانمقاله",
        "dctermstitle", "titleofarticle", "titleofthearticle", "titleofpaper", "titleofthepaper", "titleofstudy",
        "titleofthestudy", "titleofpublication", "manuscripttitle", "referencetitle", "citationtitle", "reporttitle",
        "thesistitle", "papername", "articlename", "nameofarticle", "nameofpaper", "titleofreference", "titleclean",
        "titleen", "maintitle", "bibliographictitle", "chaptertitle", "dissertationtitle", "researchtitle",
        "englishtitle",
    ] },
    Rule { field: Field::Author, names: &[
        "authorfullnames", "fullauthornames", "作者全名", "著者フルネーム", "authors", "author", "authornames", "firstauthors", "authorsprimary",
        "primaryauthors", "creators", "creator", "contributors", "authorlist", "authorshipsauthordisplayname",
        "authorsnames", "af", "au", "a1", "dccreator", "autoren", "autor", "autores", "auteurs", "auteur", "autori",
        "inventors", "firstauthor", "作者", "作者名", "全部作者", "来源作者", "著者", "著者名", "作成者", "저자", "저자명", "авторы", "автор", "著者氏名", "第一作者", "автори", "autorzy", "yazarlar", "yazar", "forfattere", "forfatter", "författare", "autoři", "penulis", "tekijät", "szerzők", "συγγραφείς", "المؤلفون", "نویسندگان",
        "inventorauthor", "authorstring", "autorinnen", "verfasser", "authorships", "authfullname",
        "autorherausgeberoderinstitution", "autorherausgeberoderorganisation",
        "dccontributorauthor", "dctermscreator", "allauthors", "listofauthors", "studyauthors", "authorsfullname",
        "leadauthor", "firstauthorname", "firstauthorlastname", "firstauthorsurname", "firstauthorslastname",
        "authorname", "authorsname", "namesofauthors", "nameofauthors", "authorslist", "fullauthors", "authorsstring",
        "authorstext",
    ] },
    Rule { field: Field::Editor, names: &[
        "editors", "editor", "secondaryauthors", "authorssecondary", "bookeditors", "bookauthors",
    ] },
    Rule { field: Field::Group, names: &[
        "groupauthors", "groupauthor", "corporateauthors", "corporateauthor",
    ] },
    Rule { field: Field::Date, names: &[
        "year", "publicationyear", "pubyear", "yearofpublication", "publishedyear", "yearpublished", "py",
        "publicationdate", "dateofpublication", "datepublished", "pubdate", "coverdate", "issuedate", "issued",
        "date", "published", "dcdate", "earlyaccessdate", "earlyaccessyear", "dateregistration3", "dateregistration", "registrationdate", "dateofregistration", "dateapplied", "dateregistered", "dateassigned", "registrierungsdatum", "registrationdateindrks", "overalldecisiondate", "firstposted", "firstpubdate", "startdate", "yr", "y1", "da", "jahr",
        "erscheinungsjahr", "año", "ano", "année", "annee", "anno", "年", "年份", "出版年", "出版年份", "出版日期", "发表年份", "出版年月", "発行年月", "発行日", "发表时间", "出版时间", "発行年", "出版年月日", "出版日付",
        "발행연도", "발행년", "발행년도", "발행년월", "연도", "год", "годпубликации", "出版日", "公開日", "发表日期", "發表年", "注册时间", "注册日期", "рік", "rok", "jaar", "yıl", "år", "vuosi", "év", "tahun", "godina", "έτος", "السنة", "سال",
        "originalpaperdate", "firstpublicationdate", "prismcoverdate", "publicationdateyear", "añodepublicación", "anodepublicación",
        "añopublicación", "fechadepublicación", "anodepublicação", "anodapublicação", "datadepublicação", "annéedepublication",
        "datedepublication", "annodipubblicazione", "veröffentlichungsjahr", "publikationsjahr", "erscheinungsdatum", "veröffentlichungsdatum",
        "jaarvanpublicatie", "publicatiejaar", "rokwydania", "rokpublikacji", "rokvydání", "yayınyılı",
        "utgivningsår", "publiceringsår", "udgivelsesår", "utgivelsesår", "julkaisuvuosi", "tahunterbit",
        "годиздания", "датапубликации", "ріквидання", "рікпублікації", "سالانتشار", "سنةالنشر",
        "출판연도", "출판년도", "初回公表日", "登録日", "등록일", "등록일자",
        "fechaderegistro", "datadoregistro", "produceddate", "publicationdatey", "produceddatey",
        "jahrermittelt", "yearderived", "publishtime",
        "dcdateissued", "dctermsissued", "publishedprint", "publishedonline", "年代",
        "yearofpub", "yearpub", "publisheddate", "publishdate", "publishyear", "publishingyear", "pubyr", "publyear",
        "releasedate", "pdat",
    ] },
    Rule { field: Field::MonthDay, names: &["month", "publishedmonth", "publicationmonth", "day"] },
    Rule { field: Field::Journal, names: &[
        "fulljournal", "journal", "journaltitle", "sourcetitle", "secondarytitle", "publicationtitle", "publicationname",
        "journalname", "journalbook", "fulljournalname", "journalfull", "publication", "pubtitle", "periodical",
        "periodicalfull", "parenttitle", "primarylocationsourcedisplayname", "hostvenuedisplayname", "containertitle", "venue",
        "source", "journalabbreviation", "abbreviatedsourcetitle", "journalabbrev", "isoabbreviation",
        "alternatetitle3", "alternatetitle2", "so", "jo", "jf", "t2", "zeitschrift", "revista", "revue", "rivista",
        "刊名", "期刊", "期刊名称", "期刊名", "中文刊名", "来源刊名", "文献来源", "来源", "出处", "掲載誌名", "刊行物名", "収載誌", "雑誌名", "掲載誌", "収載誌名", "ジャーナル名", "学術雑誌名", "학술지명", "학술지", "저널명", "журнал", "источник", "названиежурнала", "期刊名稱", "誌名", "資料名", "収録刊行物", "간행물명", "zeitschriftzeitung", "czasopismo", "dergi", "tijdschrift", "tidsskrift", "tidskrift", "časopis", "periódico", "jurnal", "lehti", "folyóirat", "περιοδικό", "المجلة", "مجله",
        "prismpublicationname", "jabbrv", "títulodelarevista", "nombredelarevista", "titredelarevue", "zeitschriftentitel",
        "dergiadı",
        "títulodafonte", "títulodelafuente", "títulodarevista", "títulodoperiódico", "sourcedisplayname",
        "来源出版物名称", "出版物名", "来源出版物", "情報源",
        "sourcetitleanthologytitle",
        "dcrelationispartof", "dcrelationjournal", "dcsource", "dctermsispartof", "cgjournal", "nameofjournal", "nameofthejournal",
        "journalconference", "conferencejournal", "journalorconference", "publicationvenue", "venuename", "publishedin",
        "sourcename", "publicationsource", "nameofpublication", "journalfullname", "journalabbr", "medlineta",
        "journalbooktitle",
    ] },
    Rule { field: Field::Book, names: &[
        "booktitle", "anthologytitle", "conferencetitle", "proceedingstitle",
    ] },
    Rule { field: Field::Series, names: &[
        "series", "seriestitle", "bookseriestitle",
    ] },
    Rule { field: Field::Volume, names: &[
        "volume", "vol", "volumenumber", "journalvolume", "bibliovolume", "vl", "band", "jahrgang", "volumen",
        "卷", "卷号", "巻号", "巻", "권", "том", "tom", "cilt", "jaargang", "årgang", "ročník", "kötet", "τόμος",
        "prismvolume", "tomo", "tome", "دوره", "جلد", "المجلد",
        "cgvolume", "volumeno", "volno",
    ] },
    Rule { field: Field::Issue, names: &[
        "issue", "number", "issuenumber", "journalissue", "journalnumber", "biblioissue", "no", "is", "heft",
        "heftnummer", "número", "numero", "期", "期号", "号", "호", "номер", "выпуск", "номервыпуска", "numéro", "numer", "nummer", "sayı", "hefte", "číslo", "τεύχος",
        "issueidentifier", "prismissueidentifier", "fascicolo", "fascículo", "ausgabe", "zeszyt",
        "شماره", "العدد",
        "númerodaedição", "númerodaedición",
        "cgissue", "issueno", "issuenr", "iss",
    ] },
    Rule { field: Field::Pages, names: &[
        "pages", "pagerange", "pagenumbers", "page", "pagespan", "pagination", "pageno", "seiten", "páginas", "paginas", "pagine",
        "页码", "起止页码", "页码范围", "页", "頁", "ページ", "페이지", "수록면", "seitenvonbis", "страницы", "頁次", "頁碼", "起止頁碼", "сторінки", "strony", "sayfa", "sayfalar", "sider", "sidor", "strany", "σελίδες",
        "pageinfo", "prismpagerange", "صفحات", "الصفحات",
        "journalpages", "pp", "pgs", "articlepages", "pagesarticlenumber",
    ] },
    Rule { field: Field::FirstPage, names: &[
        "startpage", "pagestart", "firstpage", "beginningpage", "bibliofirstpage", "bp", "sp", "articlenumber",
        "artno", "artnumber", "articleno", "ar", "起始页", "開始ページ", "시작페이지",
        "páginainicial", "起始页码", "论文编号", "論文番号",
        "lpages",
    ] },
    Rule { field: Field::LastPage, names: &[
        "endpage", "pageend", "lastpage", "endingpage", "bibliolastpage", "otherpages", "ep", "终止页", "終了ページ", "끝페이지",
        "páginafinal", "结束页码",
        "upages",
    ] },
    Rule { field: Field::Doi, names: &[
        "doi", "doidoi", "digitalobjectidentifier", "itemdoi", "doilink", "articledoi", "doiurl", "di", "do",
        "doi号", "urldoi", "doiname",
        "prismdoi", "originalpaperdoi", "doiid",
        "digitalobjectidentifierdoi", "externalidsdoi",
        "dcidentifierdoi", "cgidentifierdoi", "doinumber", "doicode",
        "doiorurl", "doiclean", "paperdoi", "linkdoi", "crossrefdoi",
    ] },
    Rule { field: Field::Pmid, names: &[
        "pmid", "pubmedid", "medlinepmid", "pubmedidentifier", "idspmid", "pm",
        "originalpaperpubmedid",
        "externalidspubmed",
        "dcidentifierpmid", "pmidclean", "pmidnumber", "pubmedpmid",
    ] },
    Rule { field: Field::Accession, names: &[
        "accessionnumber", "uniqueidentifier", "ui", "an",
    ] },
    Rule { field: Field::Database, names: &[
        "database", "databasename", "longdbname", "db", "databaseprovider",
    ] },
    Rule { field: Field::Citation, names: &[
        "citation", "年代卷期", "巻号頁", "巻号ページ", "권호사항", "年卷期", "年卷期页码", "年卷期页",
    ] },
    Rule { field: Field::Abstract, names: &[
        "abstract", "abstractnote", "summary", "abstracttext", "briefsummary", "ab", "dcdescription",
        "zusammenfassung", "resumen", "résumé", "resumo", "riassunto", "摘要", "文摘", "抄録", "초록", "аннотация", "реферат", "中文摘要", "анотація", "streszczenie", "özet", "samenvatting", "sammendrag", "sammanfattning", "abstrakt", "abstrak", "περίληψη", "الملخص", "چکیده",
        "tiivistelmä", "description",
        "abstracts",
        "dcdescriptionabstract", "dctermsabstract", "abstractclean", "paperabstract", "articleabstract",
        "englishabstract",
    ] },
    Rule { field: Field::Keyword, names: &[
        "keywords", "keyword", "authorkeywords", "keywordsauthor", "indexkeywords", "keywordsplus", "tags", "manualtags", "automatictags",
        "emtreedrugindexterms", "emtreedrugindextermsmajorfocus", "emtreemedicalindexterms",
        "emtreemedicalindextermsmajorfocus", "ieeeterms",
        "meshterms", "subjects", "subject", "subjectterms", "keywordsdisplayname", "conditions", "condition", "medicalconditions", "healthconditionsorproblemsstudied", "broadterms", "descriptors", "taxanotes", "supertaxa", "de", "kw", "schlagwörter", "schlagworte", "palabrasclave",
        "motsclés", "关键词", "关键字", "キーワード", "키워드", "주제어", "ключевыеслова", "關鍵詞", "關鍵字", "主题词", "ключовіслова", "słowakluczowe", "anahtarkelimeler", "trefwoorden", "palavraschave", "parolechiave", "nøkkelord", "nyckelord", "klíčováslova", "katakunci",
        "authkeywords", "motsclefs", "schlüsselwörter", "کلیدواژهها", "کلیدواژه", "الكلماتالمفتاحية",
        "作者关键字", "索引关键字", "著者キーワード", "索引キーワード",
        "dcsubject", "dctermssubject", "keywordlist", "tagskeywords", "keywordstags", "mesh", "meshheadings",
        "subjectheadings", "indexterms",
    ] },
    Rule { field: Field::Url, names: &[
        "url", "link", "urls", "links", "weblink", "articleurl", "documenturl", "studyurl", "fulltextlink",
        "fulltexturl", "plink", "記事url", "embaselink", "openurllink", "landingpageurl", "webaddress", "onlineadresse", "ur", "网址", "链接",
        "externalurl", "sourcelinkout", "dimensionsurl", "primarylocationlandingpageurl", "pdflink", "sourceurls",
        "resultlink", "prismurl", "uri", "リンク",
        "dcidentifieruri", "linktoarticle", "articlelink", "paperurl", "paperlink", "linktopaper", "weburl", "htmllink",
        "permalink", "hyperlink", "pubmedlink", "pubmedurl", "pdfurl",
    ] },
    Rule { field: Field::Type, names: &[
        "publicationtype", "documenttype", "typeofreference", "referencetype", "itemtype", "articletype", "doctypes",
        "contenttype", "worktype", "doctype", "論文種類", "type", "dt",
        "pubtype", "subtypedescription",
        "tipodepublicação", "tipodepublicación", "tipodedocumento", "文献类型", "文献タイプ",
        "dctype", "dctermstype",
        "publicationtypes", "typeofpublication", "typeofarticle", "typeofdocument", "papertype",
    ] },
    Rule { field: Field::Extra, names: &["nctid", "nctnumber"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// Columns of Consensus, Elicit, Litmaps, SciSpace and Undermind.
const NATURAL: [&[&str]; 6] = [
    &["LitmapsId"],
    &["Consensus Link"],
    &["Takeaway", "Study Type"],
    &["DOI link", "Venue"],
    &["Paper Title", "TL;DR"],
    &["Relevance", "Citations / Year"],
];

/// The columns that identify a work. A table without any of them is not a list of references.
const IDENTIFYING: [Field; 5] = [Field::Title, Field::Doi, Field::Pmid, Field::Author, Field::Abstract];

/// The minimum number of known columns in a header that is not the first row: a line above it may be the name of one
/// column.
const MIN_COLUMNS: usize = 2;

/// The maximum number of columns. A row with more cells is quarantined; databases export up to 100 columns.
const MAX_COLUMNS: usize = 4_096;

/// The maximum length of a name of a column, in bytes, by which a header is distinguished from other text.
pub(crate) const MAX_NAME: usize = 64;

/// The header of a table.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) delimiter: Delimiter,
    /// `true` if a quote at the start of a cell opens a quoted cell.
    pub(crate) quotes: bool,
    pub(crate) columns: Vec<Column>,
    /// `true` if a column other than `source` holds the journal.
    pub(crate) has_journal: bool,
    /// `true` for the table of SpringerLink, in which nothing separates the authors.
    pub(crate) joins_authors: bool,
    /// `true` for a table of programs that write commas between names in natural order: `Ann Roe, Bob Doe`.
    pub(crate) has_natural_names: bool,
}

/// A column: its field, if its name is known, and its name.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) named: Option<FieldName>,
    pub(crate) name: String,
}

impl Header {
    /// Parses this row if it is a header.
    pub(crate) fn parse(row: &str, delimiter: Delimiter) -> Option<Self> {
        let quotes = has_quotes(row.as_bytes(), delimiter);
        let mut names: Vec<_> = cells(row, delimiter.byte(), quotes).take(MAX_COLUMNS).collect();
        if quotes && let Some(inner) = inner_cells(row, delimiter, &names, MAX_COLUMNS) {
            names = inner;
        }
        let mut columns: Vec<_> = names.iter().enumerate().map(|(at, name)| column(name, at)).collect();
        let unnamed = names.iter().take(MAX_UNNAMED).take_while(|name| is_unnamed(name)).count();
        if let Some(column) = columns.get_mut(unnamed).filter(|column| is_count(&column.name)) {
            column.named = None;
        }
        if !quotes {
            columns.iter_mut().for_each(|column| column.named = wos::field(&column.name));
        } else if has_tags(&columns) {
            // A spreadsheet may have added columns with other names. `DA` is the day of the export.
            columns.iter_mut().for_each(|column| {
                let other = column.named.filter(|_| column.name != "DA");
                column.named = wos::field(&column.name).or(other);
            });
        }
        if has_medline_tags(&columns) {
            columns.iter_mut().for_each(|column| column.named = nbib::field(&column.name).or(column.named));
        }
        if is_earlier_pubmed(&columns) {
            columns.iter_mut().for_each(as_earlier_pubmed);
        }
        if columns.iter().any(|column| column.name == "Covidence #") {
            // These are remarks of the reviewers.
            columns.iter_mut().filter(|column| column.name == "Tags").for_each(|column| column.named = None);
        }
        with_other_authors(&mut columns);
        if columns.iter().any(|column| column.name.starts_with("UT (Unique")) {
            columns.iter_mut().for_each(as_web_of_science);
        }
        let known = columns.iter().filter_map(|column| column.named);
        let recognised = known.into_iter().any(|named| IDENTIFYING.contains(&named.field));
        // Abbreviations of the journal are less preferred than the source.
        let rank = INDEX.find("source").map_or(0, |source| source.rank);
        let journal =
            |named: FieldName| named.field == Field::Journal && (named.rank < rank || !named.name.is_ascii());
        let has_journal = columns.iter().filter_map(|column| column.named).any(journal);
        let has = |name: &str| columns.iter().any(|column| column.name == name);
        let joins_authors = ["Item Title", "Item DOI", "Content Type"].into_iter().all(has);
        let has_natural_names = NATURAL.iter().any(|names| names.iter().all(|name| has(name)));
        recognised.then_some(Self {
            delimiter,
            quotes,
            columns,
            has_journal,
            joins_authors,
            has_natural_names,
        })
    }

    pub(crate) fn recognised(&self) -> usize {
        self.columns.iter().filter(|column| column.named.is_some()).count()
    }

    /// The number of different fields that the columns hold.
    pub(crate) fn fields(&self) -> usize {
        let mut fields = [false; FIELDS];
        for named in self.columns.iter().filter_map(|column| column.named) {
            fields[named.field as usize] = true;
        }
        fields.into_iter().filter(|known| *known).count()
    }

    pub(crate) fn has_titles(&self) -> bool {
        let titles = |column: &Column| column.named.is_some_and(|named| named.field == Field::Title);
        self.columns.iter().any(titles)
    }
}

/// Returns `true` if this row is the header of a table of references. Lines about the export may precede it.
pub(crate) fn is_header(row: &[u8], delimiter: Delimiter, is_first: bool) -> bool {
    let is_known = |row: &str| {
        Header::parse(row, delimiter)
            .is_some_and(|header| header.has_titles() && (is_first || header.recognised() >= MIN_COLUMNS))
    };
    decoded(row).any(|row| is_known(&row))
}

/// Returns a row in each encoding that it may have. In another encoding the names of the columns would not be words.
fn decoded(row: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let (known, others): (_, &[_]) = match std::str::from_utf8(row) {
        _ if has_escape(row) => (Some(Decoder::Web(encoding_rs::ISO_2022_JP).decode(row)), &[]),
        Ok(row) => (Some(Cow::Borrowed(row)), &[]),
        Err(_) => (None, &ENCODINGS),
    };
    let others = others.iter().map(|encoding: &&encoding_rs::Encoding| {
        spend(row.len());
        encoding.decode_without_bom_handling(row).0
    });
    known.into_iter().chain(others)
}

/// The encodings of tables with names of columns in other scripts.
static ENCODINGS: [&encoding_rs::Encoding; 11] = [
    encoding_rs::WINDOWS_1252,
    encoding_rs::GB18030,
    encoding_rs::SHIFT_JIS,
    encoding_rs::EUC_KR,
    encoding_rs::BIG5,
    encoding_rs::WINDOWS_1251,
    encoding_rs::WINDOWS_1250,
    encoding_rs::WINDOWS_1254,
    encoding_rs::WINDOWS_1257,
    encoding_rs::WINDOWS_1253,
    encoding_rs::WINDOWS_1256,
];

/// Returns `true` if a table with this header quotes its cells.
pub(crate) fn has_quotes(header: &[u8], delimiter: Delimiter) -> bool {
    let mut names = unmarked(header).split(|byte| *byte == delimiter.byte());
    let web_of_science = delimiter == Delimiter::Tab
        && names.next() == Some(b"PT")
        && names.filter(|name| matches!(*name, b"AU" | b"TI" | b"SO" | b"PY" | b"UT")).count() > 1;
    !web_of_science
}

/// Returns `true` if the names of the columns are the tags of Web of Science, whose tables spreadsheets save with other
/// delimiters.
fn has_tags(columns: &[Column]) -> bool {
    /// The minimum number of tags in a table without the number in Web of Science.
    const MIN_TAGS: usize = 10;
    let is_tag = |column: &&Column| column.name.len() == 2 && wos::field(&column.name).is_some();
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let has_many = || columns.iter().filter(is_tag).count() >= MIN_TAGS;
    let begins = columns.first().is_some_and(|first| first.name == "PT");
    // The frames of bibliometrix have the tags in another order, and a short reference `SR`.
    (begins && (has("UT") || has_many())) || (has("SR") && has("AU") && has("TI") && has_many())
}

/// Returns `true` if the names of the columns are the tags of MEDLINE, as programs write the records of PubMed.
fn has_medline_tags(columns: &[Column]) -> bool {
    /// Tags that other tables hardly have.
    const TAGS: [&str; 12] = ["DP", "JT", "TA", "VI", "IP", "PG", "FAU", "LID", "AID", "MH", "OT", "STAT"];
    const MIN_TAGS: usize = 4;
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    has("PMID") && has("TI") && TAGS.iter().filter(|tag| has(tag)).count() >= MIN_TAGS
}

/// Returns `true` for a table of PubMed from before 2020.
fn is_earlier_pubmed(columns: &[Column]) -> bool {
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    ["Title", "Description", "Details", "ShortDetails", "EntrezUID"].into_iter().all(has)
}

/// Interprets a column of such a table.
fn as_earlier_pubmed(column: &mut Column) {
    let field = |name: &str| INDEX.find(name);
    column.named = match column.name.as_str() {
        "Title" => field("title"),
        "Description" => field("authors"),
        // `J Tests. 2019 Jul 22;34(28):e192. doi: 10.5555/a.`
        "Details" => field("citation"),
        "EntrezUID" => field("pmid"),
        "Db" => field("database"),
        _ => None,
    };
}

/// Adds the column of the other authors to that of the first author, if no column holds all authors.
fn with_other_authors(columns: &mut [Column]) {
    let is_author = |column: &&Column| column.named.is_some_and(|named| matches!(named.field, Field::Author));
    let mut authors = columns.iter().filter(is_author).filter_map(|column| column.named);
    let (Some(first), None) = (authors.next(), authors.next()) else { return };
    if first.name != "firstauthor" {
        return;
    }
    let is_other = |column: &&mut Column| {
        let plain: String = plain_name(&column.name);
        matches!(plain.as_str(), "otherauthors" | "coauthors" | "remainingauthors" | "additionalauthors")
    };
    if let Some(other) = columns.iter_mut().find(is_other) {
        other.named = Some(first);
    }
}

/// The letters and digits of a name in lower case.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns `true` for the line `sep=;` that spreadsheets write before the header.
pub(crate) fn is_separator_line(row: &[u8]) -> bool {
    row.len() == 5 && row[..4].eq_ignore_ascii_case(b"sep=")
}

/// Interprets a column of Web of Science. Its files have short and full names, a letter for the publication type in
/// addition to the type of the document, and a date without its year.
fn as_web_of_science(column: &mut Column) {
    let Some(named) = &mut column.named else { return };
    match named.name {
        "authors" => named.field = Field::ShortAuthor,
        "publicationdate" => named.field = Field::MonthDay,
        "publicationtype" => column.named = None,
        _ => {}
    }
}

/// Returns `true` for `author1`: a table with a column for each author.
fn is_numbered_author(name: &str) -> bool {
    name.strip_prefix("author").is_some_and(|number| {
        (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns `true` for `title_s`: HAL's names end with the type of their values.
fn has_type(name: &str) -> bool {
    ["_s", "_i", "_t"].iter().any(|suffix| name.ends_with(suffix))
}

/// The maximum number of columns without a name before the column that counts the rows.
const MAX_UNNAMED: usize = 2;

/// Returns `true` for the name of a column that R or pandas adds for the numbers of the rows.
fn is_unnamed(name: &str) -> bool {
    let name = unmarked_name(name);
    matches!(name, "" | "...1" | "X" | "#") || name.starts_with("Unnamed:")
}

/// The name of a column without blanks and without a byte-order mark, which R and other programs read as letters.
fn unmarked_name(name: &str) -> &str {
    const MARKS: [&str; 4] = ["ï»¿", "ï..", "Ã¯..", "X.U.FEFF."];
    let name = name.trim().trim_start_matches('\u{feff}');
    MARKS.iter().find_map(|mark| name.strip_prefix(mark)).unwrap_or(name)
}

/// Returns `true` for the name of a first column that counts the rows.
fn is_count(name: &str) -> bool {
    let plain = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    ["no", "number", "nr"].iter().any(|known| plain.clone().eq(known.chars()))
}

/// The beginning of the names that pages of publishers use for search engines, and programs for columns.
const CITATION: &str = "citation_";

/// The part of a name in another script: CNKI writes its names in two languages, as `Title-题名`.
fn bilingual(name: &str, plain: &str) -> Option<String> {
    let other: String = plain.chars().filter(|c| !c.is_ascii()).collect();
    (name.contains('-') && !other.is_empty() && other.len() < plain.len()).then_some(other)
}

/// A name without the language of its values, which repositories append: `dc.title[en_US]`.
fn without_language(name: &str) -> &str {
    let bare = name.split_once('[').filter(|(bare, rest)| rest.ends_with(']') && bare.contains('.'));
    bare.map_or(name, |(bare, _)| bare)
}

/// The maximum length of a name with alternatives or a remark.
const MAX_EXPLAINED: usize = 64;

/// Interprets a name with a remark about its values, or with alternatives: `Year (YYYY)`, `Title / Titel`,
/// `Journal/Conference`. Columns with a plain name are preferred.
fn explained(name: &str) -> Option<FieldName> {
    const CONTAINERS: [&str; 5] = ["conference", "proceedings", "magazine", "newspaper", "website"];
    if name.len() > MAX_EXPLAINED || !name.contains(['/', '(']) {
        return None;
    }
    let is_container =
        |named: &FieldName| matches!(named.field, Field::Journal | Field::Book | Field::Series);
    let (mut found, mut others): (Option<FieldName>, bool) = (None, false);
    let (bare, is_year) = without_remark(name);
    for part in bare.split('/') {
        let plain = plain_name(part);
        match (INDEX.find(&plain), found) {
            (Some(named), None) => found = Some(named),
            (Some(named), Some(known)) if named.field == known.field => {}
            (Some(named), Some(known)) if is_container(&named) && is_container(&known) => {
                found = Some(if known.field == Field::Journal { known } else { named });
            }
            (None, _) if CONTAINERS.contains(&plain.as_str()) => others = true,
            _ => return None,
        }
    }
    let found = found.filter(|found| !others || is_container(found))?;
    if is_year && found.field != Field::Date {
        return None;
    }
    Some(FieldName { rank: u8::MAX, ..found })
}

/// Removes a remark at the end of a name, such as the notation of its values. Returns `true` if the remark is a year.
fn without_remark(name: &str) -> (&str, bool) {
    #[rustfmt::skip]
    const REMARKS: [&str; 14] = [
        "year", "link", "url", "full", "abbreviated", "english", "original", "ifavailable", "ifany", "optional",
        "required", "fromto", "startend", "journal",
    ];
    let Some((front, remark)) = name.trim_end().strip_suffix(')').and_then(|name| name.rsplit_once('('))
    else {
        return (name, false);
    };
    let plain = plain_name(remark);
    let is_notation = !plain.is_empty() && plain.bytes().all(|byte| matches!(byte, b'y' | b'm' | b'd'));
    let is_known = is_notation || REMARKS.contains(&plain.as_str());
    (if is_known { front } else { name }, is_notation || plain == "year")
}

/// Interprets the name of a column.
pub(crate) fn column(name: &str, at: usize) -> Column {
    let name = unmarked_name(name);
    let plain = plain_name(without_language(name));
    let name = if name.is_empty() { format!("column {}", at + 1) } else { name.to_owned() };
    // A first column with this name counts the rows.
    if at == 0 && is_count(&plain) {
        return Column { named: None, name };
    }
    if is_numbered_author(&plain) {
        return Column { named: Some(FieldName::new(Field::Author, "author", u8::MAX)), name };
    }
    let named = INDEX
        .find(&plain)
        .or_else(|| INDEX.find(bilingual(&name, &plain)?))
        .or_else(|| {
            let bare =
                name.to_ascii_lowercase().starts_with(CITATION).then(|| &plain[CITATION.len() - 1..])?;
            INDEX.find(bare)
        })
        .or_else(|| INDEX.find(plain.get(..plain.len().checked_sub(1)?).filter(|_| has_type(&name))?))
        .or_else(|| explained(&name));
    Column { named, name }
}

/// The number of columns that identify a header among the lines of another format.
pub(crate) const SURE_COLUMNS: usize = 3;

/// The maximum number of digits in a header in an older encoding.
const MAX_DIGITS: usize = 3;

/// The number of known columns of a header row whose cells are all short, without blanks after the delimiters. The
/// number is zero if the columns do not suffice to identify a header.
pub(crate) fn known_columns(row: &[u8], delimiter: Delimiter) -> usize {
    // Most lines fail at their first byte or at one of their first cells, so the cells are inspected before they are
    // counted.
    let mut at = 0;
    let mut ends = memchr::memchr_iter(delimiter.byte(), row).chain([row.len()]);
    let begins = |byte: &u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'"' | b'_' | b'#' | b'(')
    };
    // Without its equals sign, `a=1` would be the name of a column.
    let is_name =
        |cell: &[u8]| cell.len() <= MAX_NAME && cell.first().is_none_or(begins) && !cell.contains(&b'=');
    let mut columns = 0;
    let is_begun = row.first().is_none_or(|first| *first == delimiter.byte() || begins(first));
    if !is_begun || memchr::memchr(delimiter.byte(), row).is_none() {
        return 0;
    }
    let are_names = ends.all(|end| {
        let cell = &row[std::mem::replace(&mut at, end + 1)..end];
        columns += 1;
        is_name(cell)
    });
    if !are_names || columns < SURE_COLUMNS {
        return 0;
    }
    // Most rows of values have a year or another number, so they need not be decoded in each encoding.
    let digits = row.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits > MAX_DIGITS && std::str::from_utf8(row).is_err() {
        return 0;
    }
    let headers = decoded(row).filter_map(|row| Header::parse(&row, delimiter));
    let known = headers.filter(Header::has_titles).map(|header| header.fields()).max().unwrap_or(0);
    if known < SURE_COLUMNS { 0 } else { known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_found_in_any_encoding() {
        for (header, encoding) in [
            ("题名,作者,刊名", encoding_rs::GB18030),
            ("タイトル,著者名,収載誌名", encoding_rs::SHIFT_JIS),
            ("논문명,저자,학술지명", encoding_rs::EUC_KR),
            ("Название,Авторы,Журнал", encoding_rs::WINDOWS_1251),
            ("Título,Autores,Revista", encoding_rs::WINDOWS_1252),
        ] {
            assert!(is_header(&encoding.encode(header).0, Delimiter::Comma, true), "{header}");
        }
        let prose = encoding_rs::GB18030.encode("研究,方法,结果").0.into_owned();
        assert!(!is_header(&prose, Delimiter::Comma, true));
    }

    #[test]
    fn row_of_values_is_not_a_header() {
        assert_eq!(known_columns(b"Title,A1,AB", Delimiter::Comma), 3);
        assert_eq!(known_columns(b"Title,a=1,ab", Delimiter::Comma), 0);
    }

    #[test]
    fn column_names_ignore_case_blanks_and_punctuation() {
        let field = |name: &str| column(name, 0).named.map(|named| named.field);
        assert_eq!(field("Author(s)"), Some(Field::Author));
        assert_eq!(field("publication_year"), Some(Field::Date));
        assert_eq!(field(" \u{feff}Title"), Some(Field::Title));
        for name in ["ï»¿Title", "ï..Title", "X.U.FEFF.Title"] {
            assert_eq!((field(name), column(name, 0).name.as_str()), (Some(Field::Title), "Title"));
        }
        assert_eq!(field("StartPage"), Some(Field::FirstPage));
        assert_eq!(field("primary_location.source.display_name"), Some(Field::Journal));
        assert_eq!(field("Original Title"), None);
        assert_eq!(
            (field("Author 12"), field("Author 1 ID"), field("Author 123")),
            (Some(Field::Author), None, None)
        );
        assert_eq!((field("ISSN号"), field("DOI号")), (None, Some(Field::Doi)));
        assert_eq!(field("No."), None, "it counts the rows");
        assert_eq!(
            (field("Title-题名"), field("作者"), field("DOI-DOI")),
            (Some(Field::Title), Some(Field::Author), Some(Field::Doi))
        );
    }
}
