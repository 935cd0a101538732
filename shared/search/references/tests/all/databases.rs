//! Exports of databases in their own formats.

use references::{Format, Outcome};

use crate::{read, reference, references};

fn format(text: &str) -> Format {
    read(text.as_bytes()).unwrap().1.format
}

#[test]
fn noteexpress_records_are_read() {
    let text = "{Reference Type}: Journal Article\n{Title}: 支持的研究\n{Translated Title}: A study of support\n{Author}: 许一\n{Author}: 张二\n\
        {Journal}: 示例医学\n{Year}: 2020\n{Volume}: 5\n{Issue}: 1\n{Pages}: 49-51\n{Keywords}: 支持;护理\n{Abstract}: 目的。\n{DOI}: 10.5555/a\n\n\
        {Reference Type}: Thesis\n{Title}: 第二\n{Author}: 江三\n";
    assert_eq!(format(text), Format::NoteExpress);
    let found = references(text);
    assert_eq!((found[0].title.as_str(), found[1].title.as_str()), ("支持的研究", "第二"));
    assert_eq!(
        (found[0].authors.as_slice(), found[0].year),
        (["许一", "张二"].map(String::from).as_slice(), Some(2020))
    );
    assert_eq!((found[0].journal.as_deref(), found[0].doi.as_deref()), (Some("示例医学"), Some("10.5555/a")));
    assert_eq!((found[0].pages.as_deref(), found[0].keywords.len()), (Some("49-51"), 2));
    assert_eq!(found[0].extra["Translated Title"], ["A study of support"]);
}

#[test]
fn cnki_texts_are_read() {
    let text = "SrcDatabase-来源库: 期刊\nTitle-题名: 支持的研究\nAuthor-作者: 张一;王二;\nSource-文献来源: 示例医学\nKeyword-关键词: 跌倒;;老年人\n\
        Summary-摘要: 目的。\nYear-年: 2020\nPageCount-页码: 1-5\nDOI-DOI: 10.5555/a\n\nSrcDatabase-来源库: 期刊\nTitle-题名: 第二\n";
    assert_eq!(format(text), Format::CnkiText);
    let found = references(text);
    assert_eq!((found.len(), found[0].title.as_str()), (2, "支持的研究"));
    assert_eq!(
        (found[0].authors.as_slice(), found[0].year),
        (["张一", "王二"].map(String::from).as_slice(), Some(2020))
    );
    assert_eq!((found[0].journal.as_deref(), found[0].keywords.len()), (Some("示例医学"), 2));
    assert_eq!((found[0].pages.as_deref(), found[0].doi.as_deref()), (Some("1-5"), Some("10.5555/a")));
}

#[test]
fn trials_of_the_portal_are_read() {
    let text = "<?xml version='1.0'?>\n<Trials_downloaded_from_ICTRP>\n<Trial><Export_date>1/2/2026</Export_date>\n\
        <TrialID>X-1\n</TrialID><Public_title>Short</Public_title>\n<Scientific_title>A trial of tests\n</Scientific_title>\n\
        <web_address>https://register.example/X-1</web_address><Date_registration3>20200115</Date_registration3>\n\
        <Condition>Falls&lt;br&gt;Age</Condition></Trial></Trials_downloaded_from_ICTRP>";
    assert_eq!(format(text), Format::IctrpXml);
    let found = &references(text)[0];
    assert_eq!((found.title.as_str(), found.date.as_deref()), ("A trial of tests", Some("2020-01-15")));
    assert_eq!((found.url.as_deref(), found.keywords.len()), (Some("https://register.example/X-1"), 2));
    assert_eq!(
        (found.extra["TrialID"][0].as_str(), found.extra["Public_title"][0].as_str()),
        ("X-1", "Short")
    );
}

#[test]
fn registrations_sent_to_the_portal_are_read() {
    let text = "<trials><trial><main><trial_id>ISRCTN10000001</trial_id><date_registration>2020-01-15</date_registration>\
        <public_title>Short</public_title><scientific_title>A trial of tests</scientific_title>\
        <url>https://www.isrctn.com/ISRCTN10000001</url><study_type>Interventional</study_type><hc_freetext>Falls</hc_freetext></main>\
        <contacts><contact><firstname>Ann</firstname></contact></contacts>\
        <secondary_ids><secondary_id><sec_id>NCT00000001</sec_id></secondary_id></secondary_ids></trial></trials>";
    assert_eq!(format(text), Format::IctrpXml);
    let found = &references(text)[0];
    assert_eq!((found.title.as_str(), found.date.as_deref()), ("A trial of tests", Some("2020-01-15")));
    assert_eq!(found.trial_ids, ["ISRCTN10000001", "NCT00000001"]);
    assert_eq!(
        (found.keywords.as_slice(), found.extra.get("firstname")),
        (["Falls".to_owned()].as_slice(), None)
    );
}

#[test]
fn trials_of_isrctn_are_read() {
    let text = "<allTrials xmlns=\"http://www.67bricks.com/isrctn\" totalCount=\"1\"><fullTrial><trial lastUpdated=\"2026-05-26T15:09:37Z\">\
        <isrctn dateAssigned=\"2020-01-15T15:09:37Z\">10000001</isrctn><trialDescription><title>Short</title>\
        <scientificTitle>A trial of tests &amp; more</scientificTitle><acronym/><studyHypothesis>We ask.</studyHypothesis>\
        <plainEnglishSummary>We test.</plainEnglishSummary></trialDescription><externalRefs><doi>10.1186/ISRCTN10000001</doi>\
        <eudraCTNumber>2019-001234-12</eudraCTNumber><clinicalTrialsGovNumber>NCT00000001</clinicalTrialsGovNumber></externalRefs>\
        <trialDesign><primaryStudyDesign>Interventional</primaryStudyDesign></trialDesign>\
        <conditions><condition><description>Falls; age</description><diseaseClass1>Other</diseaseClass1></condition></conditions>\
        <interventions><intervention><description>Exercise</description></intervention></interventions></trial>\
        <contact><title>Dr</title><forename>Ann</forename><email>a@example.org</email></contact>\
        <sponsor><organisation>University of Tests</organisation></sponsor></fullTrial></allTrials>";
    assert_eq!(format(text), Format::IsrctnXml);
    let found = &references(text)[0];
    assert_eq!(
        (found.title.as_str(), found.date.as_deref()),
        ("A trial of tests & more", Some("2020-01-15"))
    );
    assert_eq!(found.trial_ids, ["ISRCTN10000001", "EUCTR2019-001234-12", "NCT00000001"]);
    assert_eq!(
        (found.doi.as_deref(), found.r#type.as_deref()),
        (Some("10.1186/isrctn10000001"), Some("Interventional"))
    );
    assert_eq!((found.r#abstract.as_deref(), found.keywords.len()), (Some("We test."), 2));
    assert_eq!(found.url.as_deref(), Some("https://www.isrctn.com/ISRCTN10000001"));
    assert_eq!((found.authors.len(), found.extra.get("email")), (0, None));
    assert_eq!(found.extra["organisation"], ["University of Tests"]);
}

#[test]
fn summaries_of_the_european_register_are_read() {
    let text = "This file contains 2 trials\n\nEudraCT Number:          2019-001234-12\nSponsor Protocol Number: A-1\n\
        Sponsor Name:            University of Tests\nFull Title:              A trial: of tests\n                         and more\n\
        Start Date:              2020-01-15\nMedical condition:       Falls; age\nDisease:                 Term: Fall, Level: PT\n\
        Population Age:          Adults\nGender:                  Male, Female\nTrial protocol:          GB(Completed) SE(Ongoing)\n\
        Link:                    https://www.clinicaltrialsregister.eu/ctr-search/search?query=eudract_number:2019-001234-12\n\n\
        EudraCT Number:          2020-001234-12\nSponsor Protocol Number: A-2\nFull Title:              Another\n";
    let (outcomes, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.format, report.skipped), (Format::EuCtrText, None));
    let found = reference(outcomes.into_iter().next().unwrap());
    assert_eq!(
        (found.title.as_str(), found.date.as_deref()),
        ("A trial: of tests and more", Some("2020-01-15"))
    );
    assert_eq!(
        (found.trial_ids.as_slice(), found.keywords.len()),
        (["EUCTR2019-001234-12".to_owned()].as_slice(), 2)
    );
    assert!(found.url.unwrap().ends_with("eudract_number:2019-001234-12"));
    assert_eq!(found.extra["Gender"], ["Male, Female"]);
    assert_eq!(found.extra["DB"], ["EU Clinical Trials Register"]);
}

#[test]
fn protocols_of_the_european_register_are_read() {
    let protocol = |country: &str| {
        format!(
            "Summary\nEudraCT Number: 2019-001234-12\nSponsor's Protocol Code Number: A-1\nTrial Status: Ongoing\n\
             Date on which this record was first entered in the EudraCT database: 2020-01-15\n\
             Link: https://www.clinicaltrialsregister.eu/ctr-search/trial/2019-001234-12/{country}/\n\nIndex\n\
             A. Protocol Information\nB. Sponsor Information\n\nA. Protocol Information\nA.1 Member State Concerned: {country}\n\
             A.2 EudraCT number: 2019-001234-12\nA.3 Full title of the trial: A trial of tests\nand more\n\
             A.3.1 Title of the trial for lay people, in easily understood, i.e. non-technical, language: Short\n\
             A.5.2 US NCT (ClinicalTrials.gov registry) number: NCT00000001\nB. Sponsor Information\nB.Sponsor: 1\n\
             B.1.1 Name of Sponsor: University of Tests\nE.1.1 Medical condition(s) being investigated: Falls\n\
             MedDRA Classification\nE.2.1 Main objective of the trial: To test\nwhat falls.\n\
             E.3 Principal inclusion criteria: 1. Age: 18 or more\n2. Falls\nP. End of Trial\nP. End of Trial Status: Ongoing\n\n"
        )
    };
    let found = references(&[protocol("GB"), protocol("SE")].concat());
    assert_eq!((found.len(), found[0].title.as_str()), (2, "A trial of tests and more"));
    assert_eq!(found[0].trial_ids, ["EUCTR2019-001234-12", "NCT00000001"]);
    assert_eq!(
        (found[0].date.as_deref(), found[0].keywords.as_slice()),
        (Some("2020-01-15"), ["Falls".to_owned()].as_slice())
    );
    assert_eq!(found[0].r#abstract.as_deref(), Some("To test what falls."));
    assert_eq!(
        found[1].url.as_deref(),
        Some("https://www.clinicaltrialsregister.eu/ctr-search/trial/2019-001234-12/SE/")
    );
    assert_eq!(found[0].extra["E_3 Principal inclusion criteria"], ["1. Age: 18 or more 2. Falls"]);
    assert_eq!(found[0].extra["P_ End of Trial Status"], ["Ongoing"]);
}

#[test]
fn trials_of_ctis_are_read() {
    let search = r#"{"pagination": {"totalRecords": 1}, "data": [{"ctNumber": "2024-501234-12-00", "ctStatus": 3, "ctTitle": "A trial of tests",
        "conditions": "Falls; age", "sponsor": "University of Tests", "startDateEU": "18/02/2025", "trialPhase": "Phase II"}]}"#;
    let found = &references(search)[0];
    assert_eq!((found.title.as_str(), found.year), ("A trial of tests", Some(2025)));
    assert_eq!(
        (found.trial_ids.as_slice(), found.keywords.len()),
        (["CTIS2024-501234-12".to_owned()].as_slice(), 2)
    );
    assert_eq!(found.url.as_deref(), Some("https://euclinicaltrials.eu/ctis-public/view/2024-501234-12-00"));
    let trial = r#"{"ctNumber": "2024-501234-12-00", "ctStatus": "Authorised", "decisionDate": "2024-10-05", "results": {"x": [{}]},
        "authorizedApplication": {"authorizedPartI": {"medicalConditions": [{"medicalCondition": "Falls"}], "trialDetails": {
        "clinicalTrialIdentifiers": {"fullTitle": "A trial of tests and more", "publicTitle": "Short",
        "secondaryIdentifyingNumbers": {"nctNumber": {"number": "NCT00000001"}}},
        "trialInformation": {"trialObjective": {"mainObjective": "To test."}}}}}}"#;
    let found = &references(trial)[0];
    assert_eq!(
        (found.title.as_str(), found.date.as_deref()),
        ("A trial of tests and more", Some("2024-10-05"))
    );
    assert_eq!(found.trial_ids, ["CTIS2024-501234-12", "NCT00000001"]);
    assert_eq!((found.r#abstract.as_deref(), found.keywords.len()), (Some("To test."), 1));
}

#[test]
fn summaries_of_pubmed_are_read() {
    let text = r#"{"header":{"type":"esummary","version":"0.3"},"result":{"uids":["42","43"],"42":{"uid":"42","pubdate":"2020 Jan 5",
        "epubdate":"2019 Dec 1","source":"J Tests","authors":[{"name":"Roe A","authtype":"Author","clusterid":""},
        {"name":"Test Study Group","authtype":"CollectiveName"},{"name":"Doe B","authtype":"Investigator"}],
        "lastauthor":"Roe A","title":"Tests &amp; tests.","volume":"1","issue":"2","pages":"5-9","lang":["eng"],"pubtype":["Journal Article"],
        "articleids":[{"idtype":"pubmed","value":"42"},{"idtype":"doi","value":"10.5555/A"},{"idtype":"pmc","value":"PMC7012345"}],
        "history":[{"pubstatus":"received","date":"2018/01/01 00:00"}],"references":[{"refsource":"x"}],
        "fulljournalname":"Journal of tests","sortpubdate":"2020/01/05 00:00"},"43":{"uid":"43","error":"cannot get document summary"}}}"#;
    let (outcomes, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.records, report.quarantined, report.skipped), (2, 1, None));
    let found = reference(outcomes.into_iter().next().unwrap());
    assert_eq!((found.title.as_str(), found.date.as_deref()), ("Tests & tests.", Some("2020-01-05")));
    assert_eq!(found.authors, ["Roe, A", "Test Study Group"]);
    assert_eq!(
        (found.pmid.as_deref(), found.doi.as_deref(), found.pmcid.as_deref()),
        (Some("42"), Some("10.5555/a"), Some("PMC7012345"))
    );
    assert_eq!((found.journal.as_deref(), found.pages.as_deref()), (Some("Journal of tests"), Some("5-9")));
    let central = r#"{"result":{"uids":["7012345"],"7012345":{"uid":"7012345","pubdate":"2020","title":"Tests","authors":[{"name":"Roe A","authtype":"Author"}],
        "articleids":[{"idtype":"pmid","value":"0"},{"idtype":"pmcid","value":"PMC7012345"}],"fulljournalname":"Journal of tests"}}}"#;
    let found = &references(central)[0];
    assert_eq!((found.pmid.as_deref(), found.pmcid.as_deref()), (None, Some("PMC7012345")));
}

#[test]
fn ebsco_records_are_read() {
    let record = |database: &str| {
        format!(
            "<records><rec resultID=\"1\"><plink>https://search.example/?AN=7</plink><header longDbName=\"{database}\" uiTerm=\"7\">\
             <controlInfo><jinfo><jtl>J Tests</jtl></jinfo><pubinfo><dt year=\"2015\" month=\"12\" day=\"01\">2015</dt><vid>15</vid><iid>2</iid>\
             </pubinfo><artinfo><ui type=\"doi\">10.5555/a</ui><ppf>817</ppf><tig><atl>Tests.</atl></tig><aug><au>Roe, Ann</au></aug>\
             <sug><subj type=\"major\">Pain</subj></sug><ab>We test.</ab><doctype>article</doctype></artinfo></controlInfo></header></rec></records>"
        )
    };
    assert_eq!(format(&record("CINAHL")), Format::EbscoXml);
    let found = &references(&record("CINAHL"))[0];
    assert_eq!((found.title.as_str(), found.date.as_deref()), ("Tests.", Some("2015-12-01")));
    assert_eq!(
        (found.doi.as_deref(), found.pages.as_deref(), found.pmid.as_deref()),
        (Some("10.5555/a"), Some("817"), None)
    );
    assert_eq!((found.authors[0].as_str(), found.r#type.as_deref()), ("Roe, Ann", Some("article")));
    assert_eq!(references(&record("MEDLINE"))[0].pmid.as_deref(), Some("7"));
}

#[test]
fn json_of_databases_is_read() {
    let open_alex = r#"{"meta": {"count": 1}, "results": [{"id": "https://openalex.example/W1", "doi": "https://doi.org/10.5555/A",
        "display_name": "Tests", "publication_date": "2020-03-05", "ids": {"pmid": "https://pubmed.ncbi.nlm.nih.gov/42"},
        "authorships": [{"author": {"display_name": "Ann Roe"}}, {"author": {"display_name": "Bob Doe"}}],
        "primary_location": {"source": {"display_name": "J Tests"}}, "biblio": {"volume": "1", "first_page": "5", "last_page": "9"},
        "abstract_inverted_index": {"test.": [1], "We": [0]}}], "group_by": []}"#;
    let found = &references(open_alex)[0];
    assert_eq!((found.title.as_str(), found.date.as_deref()), ("Tests", Some("2020-03-05")));
    assert_eq!(found.authors, ["Ann Roe", "Bob Doe"]);
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/a"), Some("42")));
    assert_eq!((found.pages.as_deref(), found.r#abstract.as_deref()), (Some("5-9"), Some("We test.")));
    assert_eq!(found.journal.as_deref(), Some("J Tests"));

    let crossref = r#"{"status":"ok","message":{"items":[{"DOI":"10.5555/b","title":["Tests"],"author":[{"given":"Ann","family":"Roe"}],
        "container-title":["J Tests"],"published-print":{"date-parts":[[2020,2]]},"type":"journal-article"}]}}"#;
    let found = &references(crossref)[0];
    assert_eq!((found.title.as_str(), found.authors[0].as_str()), ("Tests", "Roe, Ann"));
    assert_eq!((found.date.as_deref(), found.journal.as_deref()), (Some("2020-02"), Some("J Tests")));

    let europe_pmc = r#"{"hitCount":1,"resultList":{"result":[{"pmid":"42","title":"Tests","authorString":"Roe A, Doe B.",
        "journalTitle":"J Tests","pubYear":"2020","pageInfo":"5-9"}]}}"#;
    let found = &references(europe_pmc)[0];
    assert_eq!(
        (found.authors.as_slice(), found.pmid.as_deref()),
        (["Roe, A", "Doe, B"].map(String::from).as_slice(), Some("42"))
    );

    let trials = r#"{"studies":[{"protocolSection":{"identificationModule":{"nctId":"NCT00000001","briefTitle":"Short","officialTitle":"A trial"},
        "statusModule":{"startDateStruct":{"date":"2020-01"}},"descriptionModule":{"briefSummary":"We test."}}}],"nextPageToken":"x"}"#;
    let found = &references(trials)[0];
    assert_eq!(
        (found.title.as_str(), found.date.as_deref(), found.pmid.as_deref()),
        ("A trial", Some("2020-01"), None)
    );
    assert_eq!(found.url.as_deref(), Some("https://clinicaltrials.gov/study/NCT00000001"));

    let perish = r#"[{"title": "Tests", "authors": ["A Roe", "B Doe"], "cites": 1, "source": "J Tests", "year": 2020}]"#;
    let found = &references(perish)[0];
    assert_eq!(
        (found.authors.as_slice(), found.year),
        (["A Roe", "B Doe"].map(String::from).as_slice(), Some(2020))
    );
}

#[test]
fn answers_in_a_list_are_read() {
    let crossref = r#"[{"status": "ok", "message-type": "work-list", "message": {"total-results": 2, "items": [
        {"DOI": "10.5555/a", "title": ["One"]}, {"DOI": "10.5555/b", "title": ["Two"]}]}},
        {"status": "ok", "message": {"DOI": "10.5555/c", "title": ["Three"]}}]"#;
    let europe_pmc = r#"[{"resultList": {"result": [{"pmid": "42", "title": "One"}, {"pmid": "43", "title": "Two"}]}},
        {"resultList": {"result": [{"pmid": "44", "title": "Three", "authorString": "Roe A."}]}}]"#;
    let scholar = r#"{"offset": 0, "data": [{"contexts": [], "citingPaper": {"paperId": "a", "title": "One"}},
        {"citedPaper": {"paperId": "b", "title": "Two"}}, {"bib": {"title": "Three", "pub_year": "2020"}}]}"#;
    let recommended =
        r#"{"recommendedPapers": [{"paperId": "a", "title": "One"}, {"title": "Two"}, {"title": "Three"}]}"#;
    for text in [crossref, europe_pmc, scholar, recommended] {
        let titles: Vec<_> = references(text).into_iter().map(|found| found.title).collect();
        assert_eq!(titles, ["One", "Two", "Three"], "{text}");
    }
}

#[test]
fn constants_of_python_are_no_values() {
    let text = r#"[{"title": "Tests of \"NaN\" and -Infinity", "authors": ["Roe, A"], "year": NaN, "x": [Infinity, -Infinity],
        "doi": "10.5555/a", "volume":NaN}, {"title": "Second\\", "authors": ["Doe, B"], "year": 2020}]"#;
    let found = references(text);
    assert_eq!((found.len(), found[0].title.as_str()), (2, "Tests of \"NaN\" and -Infinity"));
    assert_eq!((found[0].year, found[0].volume.as_deref()), (None, None));
    assert_eq!((found[0].doi.as_deref(), found[1].year), (Some("10.5555/a"), Some(2020)));
    let broken = r#"[{"title": "A", "authors": ["Roe, A"], "year": Nan}]"#;
    assert!(matches!(read(broken.as_bytes()).unwrap().0.as_slice(), [Outcome::Quarantined(_)]));
}

#[test]
fn json_with_common_names_is_read() {
    let in_parts = r#""journal": {"name": "J Tests", "volume": "3", "pages": "1-9"}, "identifier": [{"id": "10.5555/a", "type": "doi"}]"#;
    let plain = r#""journal": "J Tests", "volume": "3", "number": "2", "pages": "1-9", "doi": "10.5555/a""#;
    for (author, rest) in [
        (r#""author": [{"name": "Roe, Ann", "firstname": "Ann", "lastname": "Roe"}]"#, in_parts),
        (r#""author": [{"name": "Roe, Ann"}]"#, plain),
        (r#""author": ["Roe, Ann"]"#, plain),
        (r#""author": [{"family": "Roe", "given": "Ann"}]"#, plain),
        (r#""author": "Roe, Ann""#, plain),
        (r#""creators": [{"firstName": "Ann", "lastName": "Roe", "creatorType": "author"}]"#, plain),
        (r#""authors": [{"family": "Roe", "given": "Ann"}]"#, plain),
        (r#""authors": [{"Surname": "Roe", "ForeName": "Ann"}]"#, plain),
        (r#""authors": [{"fullName": "Roe, Ann"}]"#, plain),
        (r#""authors": [{"display_name": "Roe, Ann"}]"#, plain),
        (r#""authors": {"author": [{"name": "Roe, Ann"}]}"#, plain),
        (r#""authors": [["Roe", "Ann"]]"#, plain),
        (r#""authors": "[\"Roe, Ann\"]""#, plain),
    ] {
        let file = format!(r#"[{{"title": "Tests", "publication_year": 2020, {author}, {rest}}}]"#);
        let found = references(&file).remove(0);
        assert_eq!((&found.authors[..], found.year), (&["Roe, Ann".to_owned()][..], Some(2020)), "{file}");
        let places = [&found.journal, &found.volume, &found.pages, &found.doi].map(Option::as_deref);
        assert_eq!(places.map(Option::unwrap_or_default), ["J Tests", "3", "1-9", "10.5555/a"], "{file}");
    }
    for file in [
        r#"[{"Title": "Tests", "Authors": "Roe, A; Doe, B", "Year": 2020, "Source title": "J Tests", "PubMed ID": "30000009"}]"#,
        r#"[{"primary_title": "Tests", "first_authors": ["Roe, A", "Doe, B"], "publication_year": "2020///",
            "secondary_title": "J Tests", "pmid": "30000009"}]"#,
        r#"[{"record": {"title": "Tests", "authors": ["Roe, A", "Doe, B"], "year": 2020, "journal": "J Tests", "pmid": 30000009}}]"#,
    ] {
        let found = references(file).remove(0);
        assert_eq!(
            (found.title.as_str(), found.year, found.authors.len()),
            ("Tests", Some(2020), 2),
            "{file}"
        );
        let texts = [&found.authors[0], found.journal.as_ref().unwrap(), found.pmid.as_ref().unwrap()];
        assert_eq!(texts, ["Roe, A", "J Tests", "30000009"], "{file}");
    }
    let untitled =
        r#"[{"title": "A", "author": "Roe A"}, {"name": "b", "year": 2020, "url": "https://example.org/"}]"#;
    assert!(matches!(read(untitled.as_bytes()).unwrap().0[1], Outcome::Quarantined(_)));
    let csl = r#"[{"type": "report", "title": "Tests", "number": "7", "author": [{"family": "Roe"}]}]"#;
    assert_eq!(
        (references(csl)[0].issue.as_deref(), &references(csl)[0].extra["number"][0][..]),
        (None, "7")
    );
    let starter = r#"{"hits": [{"uid": "WOS:000300000000001", "title": "Tests", "types": ["Article"],
        "source": {"sourceTitle": "J Tests", "publishYear": 2020, "volume": "3", "pages": {"range": "1-9"}},
        "names": {"authors": [{"displayName": "Roe, Ann", "wosStandard": "Roe, A"}]},
        "identifiers": {"doi": "10.5555/a", "pmid": "MEDLINE:30000001"}}]}"#;
    let found = references(starter).remove(0);
    assert_eq!((&found.authors[..], found.year), (&["Roe, Ann".to_owned()][..], Some(2020)));
    let numbers =
        [&found.journal, &found.pages, &found.doi, &found.pmid, &found.wos_id].map(Option::as_deref);
    let expected = ["J Tests", "1-9", "10.5555/a", "30000001", "WOS:000300000000001"];
    assert_eq!(numbers.map(Option::unwrap_or_default), expected);
}

#[test]
fn unsupported_json_is_named_with_advice() {
    for (text, name, advice) in [
        (r#"[{"itemType": "book", "title": "a", "creators": []}]"#, "Zotero", "export RIS"),
        ("<mods:modsCollection><mods:mods/></mods:modsCollection>", "MODS", "remove the prefix"),
        ("<html><body><table></table></body></html>", "HTML", "save it as .xlsx"),
        ("<citations><article id='1'/></citations>", "JSTOR", "export RIS"),
        ("<collection><record><leader/></record></collection>", "MARC", "export MODS XML"),
    ] {
        let message = read(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains(advice), "{message}");
    }
}

#[test]
fn json_of_screening_programs_is_read() {
    let eppi = r#"{"CodeSets": [{"SetName": "a", "Attributes": {"AttributesList": []}}], "References": [{"Codes": [],
        "ItemId": 1, "Title": "Tests", "ParentTitle": "J Tests", "Year": "2020", "Volume": "3", "Issue": "4", "Pages": "1-9",
        "URL": "https://example.org/1", "Abstract": "We test.", "TypeName": "Journal, Article", "Authors": "van der Roe Ann ; Doe Bob C; Poe E ; Test Group ; ",
        "DOI": "10.5555/ep.1", "Keywords": "b; c"}]}"#;
    let found = references(eppi);
    assert_eq!(found.len(), 1);
    let found = &found[0];
    assert_eq!(
        (found.title.as_str(), found.journal.as_deref(), found.year),
        ("Tests", Some("J Tests"), Some(2020))
    );
    assert_eq!(found.authors, ["van der Roe, Ann", "Doe, Bob C", "Poe, E", "Test Group"]);
    assert_eq!((found.doi.as_deref(), found.issue.as_deref()), (Some("10.5555/ep.1"), Some("4")));
    assert_eq!(found.keywords, ["b", "c"]);

    let scholar = r#"{"total": 1, "offset": 0, "data": [{"paperId": "a1", "externalIds": {"DOI": "10.5555/s2.1",
        "PubMed": "33000001", "PubMedCentral": "7000001"}, "title": "Tests", "abstract": "We test.", "venue": "J",
        "journal": {"name": "J Tests", "volume": "3", "pages": "1-9"}, "year": 2020, "publicationDate": "2020-05-17",
        "authors": [{"authorId": "1", "name": "Ann Roe"}, {"authorId": null, "name": "Bob Doe"}],
        "publicationTypes": ["JournalArticle"]}]}"#;
    let found = &references(scholar)[0];
    assert_eq!((found.journal.as_deref(), found.date.as_deref()), (Some("J Tests"), Some("2020-05-17")));
    assert_eq!(found.authors, ["Ann Roe", "Bob Doe"]);
    assert_eq!((found.pmid.as_deref(), found.pmcid.as_deref()), (Some("33000001"), Some("PMC7000001")));
    assert_eq!((found.doi.as_deref(), found.pages.as_deref()), (Some("10.5555/s2.1"), Some("1-9")));
}

#[test]
fn mods_records_are_read() {
    let text = r#"<?xml version="1.0"?>
<modsCollection xmlns="http://www.loc.gov/mods/v3"><mods>
 <titleInfo><nonSort>The</nonSort><title>effect of tests</title><subTitle>a trial</subTitle></titleInfo>
 <titleInfo type="abbreviated"><title>Effect</title></titleInfo>
 <typeOfResource>text</typeOfResource><genre authority="local">journalArticle</genre>
 <name type="personal"><namePart type="family">Roe</namePart><namePart type="given">Ann</namePart>
  <namePart type="given">B.</namePart><role><roleTerm type="code" authority="marcrelator">aut</roleTerm></role></name>
 <name type="personal"><namePart>Doe, Bob</namePart></name>
 <name type="corporate"><namePart>The Test Group, Geneva</namePart></name>
 <name type="personal"><namePart>Funder, Fay</namePart><role><roleTerm>funder</roleTerm></role></name>
 <originInfo><dateIssued>2020-05-17</dateIssued></originInfo>
 <abstract>We test.</abstract><subject><topic>pain</topic></subject><language><languageTerm>eng</languageTerm></language>
 <identifier type="doi">10.5555/m.1</identifier><identifier type="pmid">29700001</identifier>
 <relatedItem type="host"><titleInfo><title>J Tests</title></titleInfo>
  <titleInfo type="abbreviated"><title>JT</title></titleInfo><identifier type="issn">1234-5678</identifier>
  <name type="personal"><namePart>Editor, Ed</namePart></name>
  <part><detail type="volume"><number>3</number></detail><detail type="issue"><number>4</number></detail>
   <extent unit="pages"><start>11</start><end>19</end></extent><date>2020</date></part></relatedItem>
 <relatedItem type="references"><titleInfo><title>Another</title></titleInfo><identifier type="doi">10.5555/x</identifier></relatedItem>
 <location><url>https://example.org/1</url></location>
</mods><mods><titleInfo><title>Second</title></titleInfo></mods></modsCollection>"#;
    assert_eq!(format(text), Format::ModsXml);
    let found = references(text);
    assert_eq!(found.len(), 2);
    let found = &found[0];
    assert_eq!(found.title, "The effect of tests: a trial");
    assert_eq!(found.authors, ["Roe, Ann B.", "Doe, Bob", "The Test Group, Geneva"]);
    assert_eq!((found.journal.as_deref(), found.date.as_deref()), (Some("J Tests"), Some("2020-05-17")));
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("3"), Some("4")));
    assert_eq!((found.pages.as_deref(), found.doi.as_deref()), (Some("11-19"), Some("10.5555/m.1")));
    assert_eq!(
        (found.pmid.as_deref(), found.url.as_deref()),
        (Some("29700001"), Some("https://example.org/1"))
    );
    assert_eq!(
        (found.extra["issn"][0].as_str(), found.keywords.as_slice()),
        ("1234-5678", ["pain".to_owned()].as_slice())
    );
}

const ZOTERO: &str = r##"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:z="http://www.zotero.org/namespaces/export#" xmlns:bib="http://purl.org/net/biblio#">
    <bib:Article rdf:about="https://example.org/1">
        <z:itemType>journalArticle</z:itemType>
        <dcterms:isPartOf rdf:resource="urn:issn:1234-5678"/>
        <bib:authors><rdf:Seq>
            <rdf:li><foaf:Person><foaf:surname>Roe</foaf:surname><foaf:givenName>Ann B.</foaf:givenName></foaf:Person></rdf:li>
            <rdf:li><foaf:Person><foaf:surname>The Test Group, Geneva</foaf:surname></foaf:Person></rdf:li>
        </rdf:Seq></bib:authors>
        <bib:contributors><rdf:Seq><rdf:li><foaf:Person><foaf:surname>Fay</foaf:surname></foaf:Person></rdf:li></rdf:Seq></bib:contributors>
        <dcterms:isReferencedBy rdf:resource="#item_9"/>
        <link:link rdf:resource="#item_3"/>
        <dc:subject>pain</dc:subject>
        <dc:subject><z:AutomaticTag><rdf:value>tests</rdf:value></z:AutomaticTag></dc:subject>
        <dc:title>Effect of tests</dc:title>
        <dcterms:abstract>We test.</dcterms:abstract>
        <dc:date>2020-05-17</dc:date>
        <z:libraryCatalog>PubMed</z:libraryCatalog>
        <dc:identifier>
            <dcterms:URI><rdf:value>https://example.org/1</rdf:value></dcterms:URI>
        </dc:identifier>
        <dcterms:dateSubmitted>2021-03-01 10:00:00</dcterms:dateSubmitted>
        <dc:description>PMID: 29700001
PMCID: PMC7012345</dc:description>
        <bib:pages>11-19</bib:pages>
    </bib:Article>
    <bib:Journal rdf:about="urn:issn:1234-5678">
        <prism:volume>3</prism:volume>
        <dc:title>Journal of Tests</dc:title>
        <dc:identifier>DOI 10.5555/Z.1</dc:identifier>
        <prism:number>4</prism:number>
        <dcterms:alternative>J Tests</dcterms:alternative>
        <dc:identifier>ISSN 1234-5678</dc:identifier>
    </bib:Journal>
    <z:Attachment rdf:about="#item_3"><z:itemType>attachment</z:itemType><dc:title>PDF</dc:title></z:Attachment>
    <bib:Memo rdf:about="#item_9"><rdf:value>&lt;p&gt;A note&lt;/p&gt;</rdf:value></bib:Memo>
    <bib:BookSection rdf:about="#item_4">
        <z:itemType>bookSection</z:itemType>
        <dcterms:isPartOf><bib:Book>
            <dcterms:isPartOf><bib:Series><dc:title>Series of Tests</dc:title></bib:Series></dcterms:isPartOf>
            <dc:identifier>ISBN 978-3</dc:identifier><dc:title>Book of Tests</dc:title>
        </bib:Book></dcterms:isPartOf>
        <dc:publisher><foaf:Organization><foaf:name>Press</foaf:name></foaf:Organization></dc:publisher>
        <bib:editors><rdf:Seq><rdf:li><foaf:Person><foaf:surname>Poe</foaf:surname><foaf:givenname>Ed</foaf:givenname>
        </foaf:Person></rdf:li></rdf:Seq></bib:editors>
        <dc:title>A chapter</dc:title>
        <dc:date>2019</dc:date>
    </bib:BookSection>
    <rdf:Description rdf:about="#item_5"><z:itemType>preprint</z:itemType><dc:title>A preprint</dc:title>
        <dc:identifier>DOI 10.5555/Z.2</dc:identifier></rdf:Description>
    <z:Collection rdf:about="#collection_1"><dc:title>Tests</dc:title><dcterms:hasPart rdf:resource="#item_4"/></z:Collection>
</rdf:RDF>
"##;

#[test]
fn rdf_of_zotero_is_read() {
    assert_eq!(format(ZOTERO), Format::ZoteroRdf);
    let found = references(ZOTERO);
    let (_, report) = read(ZOTERO.as_bytes()).unwrap();
    assert_eq!((found.len(), report.skipped), (3, None));
    let article = &found[0];
    assert_eq!((article.title.as_str(), article.date.as_deref()), ("Effect of tests", Some("2020-05-17")));
    assert_eq!(article.authors, ["Roe, Ann B.", "The Test Group, Geneva"]);
    assert_eq!(article.keywords, ["pain", "tests"]);
    assert_eq!(article.journal.as_deref(), Some("Journal of Tests"));
    assert_eq!((article.volume.as_deref(), article.issue.as_deref()), (Some("3"), Some("4")));
    assert_eq!((article.pages.as_deref(), article.doi.as_deref()), (Some("11-19"), Some("10.5555/z.1")));
    assert_eq!((article.pmid.as_deref(), article.pmcid.as_deref()), (Some("29700001"), Some("PMC7012345")));
    assert_eq!(
        (article.r#abstract.as_deref(), article.r#type.as_deref()),
        (Some("We test."), Some("journalArticle"))
    );
    assert_eq!(
        (article.url.as_deref(), article.extra["source"][0].as_str()),
        (Some("https://example.org/1"), "PubMed")
    );
    let chapter = &found[1];
    assert_eq!((chapter.title.as_str(), chapter.journal.as_deref()), ("A chapter", Some("Book of Tests")));
    assert_eq!((chapter.authors[0].as_str(), chapter.year), ("Poe, Ed", Some(2019)));
    assert_eq!(
        (chapter.extra["ISBN"][0].as_str(), chapter.extra["publisher"][0].as_str()),
        ("978-3", "Press")
    );
    assert_eq!((found[2].title.as_str(), found[2].doi.as_deref()), ("A preprint", Some("10.5555/z.2")));
}

#[test]
fn other_rdf_is_refused_with_advice() {
    let message =
        read(br#"<rdf:RDF xmlns:foaf="http://xmlns.com/foaf/0.1/"><foaf:Person/></rdf:RDF>"#).unwrap_err();
    assert!(message.to_string().contains("RDF, which is not supported yet; export RIS"), "{message}");
}

#[test]
fn extra_web_of_science_columns_are_read() {
    let text = "PT,AU,TI,SO,PY,UT,Abstract,DOI,Decision\nJ,\"Roe, A\",Tests,J Tests,2020,WOS:000500000000001,We test.,\
        10.5555/t.1,\"in, maybe\"\n";
    let found = &references(text)[0];
    let read = (found.r#abstract.as_deref(), found.doi.as_deref(), found.year);
    assert_eq!(read, (Some("We test."), Some("10.5555/t.1"), Some(2020)));
}

#[test]
fn web_of_science_tab_columns_are_its_tags() {
    let text = "PT\tAU\tAF\tCA\tTI\tSO\tDE\tID\tSP\tDT\tPD\tPY\tVL\tBP\tEP\tAR\tDI\tEA\tEY\tPM\tUT\tDA\n\
        J\tRoe, A\tRoe, Ann\tTest Grp; Trial Grp\tOne\tJ TESTS\ta; b\tC\tTest Soc\tArticle\tJUN 8\t2019\t3\t11\t19\t\t10.5555/w.1\t\t\t\tWOS:000478028100004\t2023-05-12\n\
        J\tDoe, B\tDoe, Bob\t\tTwo\tJ TESTS\t\t\tTest Soc\tArticle; Early Access\t\t\t\t\t\te77\t10.5555/w.2\tMAR 2021\t2021\t29700001\tWOS:000478028100005\t2023-05-12\n\
        J\tPoe, E\t\t\tThree\tJ TESTS\t\t\t\tArticle; Early Access\t\t\t\t\t\t\t\t\t2022\t\tWOS:000478028100006\t2023-05-12\n";
    let found = references(text);
    assert_eq!((found[0].date.as_deref(), found[0].pages.as_deref()), (Some("2019-06-08"), Some("11-19")));
    assert_eq!(found[0].authors, ["Roe, Ann", "Test Grp", "Trial Grp"]);
    assert_eq!(found[0].keywords, ["a", "b", "C"]);
    assert_eq!((found[1].date.as_deref(), found[1].pages.as_deref()), (Some("2021-03"), Some("e77")));
    assert_eq!((found[1].pmid.as_deref(), found[1].extra["SP"][0].as_str()), (Some("29700001"), "Test Soc"));
    // The date of the export differs from the date of the publication.
    assert_eq!((found[2].year, found[2].date.as_deref()), (Some(2022), None));
    assert_eq!(
        (found[2].authors[0].as_str(), found[2].wos_id.as_deref()),
        ("Poe, E", Some("WOS:000478028100006"))
    );
}

#[test]
fn web_of_science_workbook_columns_are_read() {
    let names = "Publication Type,Authors,Author Full Names,Group Authors,Article Title,Source Title,Conference Title,\
        Document Type,Author Keywords,Keywords Plus,Publication Date,Publication Year,Volume,Issue,Start Page,End Page,\
        Article Number,DOI,DOI Link,Early Access Date,Pubmed Id,Date of Export,UT (Unique WOS ID)";
    let rows = "J,\"Roe, A; Doe, B\",\"Roe, Ann; Doe, Bob\",Test Grp,One,J TESTS,Conf,Article,a; b,C,JUN 8,2019,3,4,11,19,,\
        10.5555/w.1,http://dx.doi.org/10.5555/w.1,,29700001,2023-05-12,WOS:000478028100004\n\
        J,\"Poe, E\",,,Two,J TESTS,,Article; Early Access,,,,,,,,,77,10.5555/w.2,,MAR 2021,,2023-05-12,WOS:000478028100005\n";
    let found = references(&format!("{names}\n{rows}"));
    assert_eq!(found[0].authors, ["Roe, Ann", "Doe, Bob", "Test Grp"]);
    assert_eq!((found[0].date.as_deref(), found[0].r#type.as_deref()), (Some("2019-06-08"), Some("Article")));
    assert_eq!((found[0].journal.as_deref(), found[0].pages.as_deref()), (Some("J TESTS"), Some("11-19")));
    assert_eq!(found[0].keywords, ["a", "b", "C"]);
    assert_eq!(
        (found[0].pmid.as_deref(), found[0].wos_id.as_deref()),
        (Some("29700001"), Some("WOS:000478028100004"))
    );
    assert_eq!((found[1].date.as_deref(), found[1].pages.as_deref()), (Some("2021-03"), Some("77")));
    assert_eq!(found[1].authors, ["Poe, E"]);
}

#[test]
fn zoological_record_fields_are_read() {
    let text = "FN Clarivate Analytics Web of Science\nVR 1.0\nPT J\nAN ZOOR15702011763\nAU Roe, Ann\nTI Tests of newts.\n\
        FT Pruebas de tritones.\nSO Journal of Tests\nVL 3\nIS 4\nPS 11-19\nPY 2020\nDE Behaviour; Tests\nBD Ecology\n\
        TN Amphibians; Vertebrates\nST Caudata\nUT ZOOREC:ZOOR15702011763\nER\n\n\
        PT J\nAU Doe, Bob\nFT Pruebas.\nSO Journal of Tests\nEY 2021\nUT ZOOREC:ZOOR15702011764\nER\n\nEF\n";
    let found = references(text);
    assert_eq!((found[0].title.as_str(), found[0].pages.as_deref()), ("Tests of newts.", Some("11-19")));
    assert_eq!(found[0].keywords, ["Behaviour", "Tests", "Ecology", "Amphibians", "Vertebrates", "Caudata"]);
    assert_eq!(found[0].wos_id.as_deref(), Some("ZOOREC:ZOOR15702011763"));
    assert_eq!(found[0].extra["FT"], ["Pruebas de tritones."]);
    assert_eq!((found[1].title.as_str(), found[1].year), ("Pruebas.", Some(2021)));

    let table = "Authors,Article Title,Foreign Title,Source Title,Volume,Page Span,Publication Year,Broad Terms,Descriptors,\
        Taxa Notes,UT (Unique ID)\n\"Roe, A\",Tests of newts,Pruebas,J Tests,3,11-19,2020,Ecology,Behaviour; Tests,Amphibians,\
        ZOOREC:ZOOR15702011763\n";
    let found = &references(table)[0];
    assert_eq!((found.title.as_str(), found.pages.as_deref()), ("Tests of newts", Some("11-19")));
    assert_eq!(found.keywords.len(), 4);
    assert_eq!(found.wos_id.as_deref(), Some("ZOOREC:ZOOR15702011763"));
}

#[test]
fn tables_in_other_encodings_are_read() {
    for (text, encoding) in [
        ("题名,作者,刊名,年\n支持的研究与效果,王伟;李明,示例医学,2020\n", encoding_rs::GB18030),
        (
            "タイトル,著者名,収載誌名,発行年月\n支援の研究について,山田太郎,雑誌,2020.05\n",
            encoding_rs::SHIFT_JIS,
        ),
        ("논문명,저자,학술지명,발행연도\n지원에 관한 연구,김철수;이영희,학회지,2020\n", encoding_rs::EUC_KR),
        (
            "Название,Авторы,Журнал,Год\nИсследование поддержки,Иванов И.И.,Журнал,2020\n",
            encoding_rs::WINDOWS_1251,
        ),
    ] {
        let (outcomes, report) = read(&encoding.encode(text).0).unwrap();
        assert_eq!((report.records, report.quarantined), (1, 0), "{text}");
        let found = reference(outcomes.into_iter().next().unwrap());
        let title = text.lines().nth(1).and_then(|row| row.split(',').next()).unwrap();
        assert_eq!((found.title.as_str(), found.year), (title, Some(2020)));
        assert!(found.journal.is_some() && !found.authors.is_empty(), "{text}");
    }
}

#[test]
fn texts_of_chinese_databases_are_read() {
    let text = "DataType: 1\nTitle-题名: 支持的研究\nAuthor-作者: 王伟;李明;\nSource-刊名: 示例医学\nYear-年: 2020\nPeriod-期: 01\n\
        PageCount-页数: 5\nPage-页码: 1-5\nSrcDatabase-来源库: 期刊\nLink-链接: https://example.org\n\nDataType: 1\nTitle-题名: 第二\n";
    let found = references(text);
    assert_eq!((found.len(), found[0].pages.as_deref(), found[0].year), (2, Some("1-5"), Some(2020)));
    assert_eq!(found[0].authors, ["王伟", "李明"]);

    let sinomed = "【流水号】：2020123456\n【标题】：支持的研究\n【作者】：王伟①;李明\n【出处】：示例医学 2020;5(1):1-5\n\n【流水号】：2\n【标题】：第二\n";
    let found = references(sinomed);
    assert_eq!(
        (found.len(), found[0].authors.as_slice()),
        (2, ["王伟", "李明"].map(String::from).as_slice())
    );
    assert_eq!((found[0].journal.as_deref(), found[0].volume.as_deref()), (Some("示例医学"), Some("5")));
    assert_eq!((found[0].year, found[0].pages.as_deref()), (Some(2020), Some("1-5")));
    let (outcomes, _) = read(&encoding_rs::GB18030.encode(&sinomed.repeat(3)).0).unwrap();
    assert_eq!(outcomes.len(), 6);

    let numbered = "1.\n【流水号】1\n【标题】第一\n【摘要】目的\n\n2.\n【流水号】2\n【标题】第二\n";
    let found = references(numbered);
    assert_eq!((found.len(), found[0].r#abstract.as_deref()), (2, Some("目的")));

    let refworks = "RT Journal Article\nSR 1\nA1 王伟;李明;\nT1 支持的研究\nIS 1\nvo 5\nOP 1-5\n";
    let found = &references(refworks)[0];
    assert_eq!((found.issue.as_deref(), found.volume.as_deref()), (Some("1"), Some("5")));
}

#[test]
fn text_of_ichushi_is_read() {
    let text = "2019000001\n【タイトル】試験の研究(原著論文/症例報告)\n【著者】山田太郎(例大学 医学部), 鈴木花子\n\
        【雑誌名】例誌(0000-0000)12巻3号 Page45-50(2019.03)\n【抄録】目的は試験である。\n\n\
        2019000002\n【タイトル】二つの試験\n【著者】佐藤次郎\n";
    for bytes in [text.as_bytes().to_vec(), encoding_rs::SHIFT_JIS.encode(text).0.into_owned()] {
        let (outcomes, report) = read(&bytes).unwrap();
        assert_eq!((outcomes.len(), report.skipped), (2, None));
        let references::Outcome::Read(first) = &outcomes[0] else { panic!("{:?}", outcomes[0]) };
        let found = &first.reference;
        assert_eq!(
            (found.title.as_str(), found.r#type.as_deref()),
            ("試験の研究", Some("原著論文/症例報告"))
        );
        assert_eq!(found.authors, ["山田太郎", "鈴木花子"]);
        assert_eq!((found.journal.as_deref(), found.volume.as_deref()), (Some("例誌"), Some("12")));
        assert_eq!((found.pages.as_deref(), found.date.as_deref()), (Some("45-50"), Some("2019-03")));
    }
}

#[test]
fn remarks_of_pubmed_are_neither_authors_nor_abstract() {
    let text = "1. J Tests. 2020 Mar 9;182(11):1-5.\n\n[Zinc].\n\n[Article in Danish]\n\nRoe A(1), Doe B.\n\n\
        Update of\n    J Tests. 2015;(1):1.\n\nZinc is a metal.\n\nPMID: 32000001\n";
    let found = &references(text)[0];
    assert_eq!(
        (found.r#abstract.as_deref(), &found.authors[..]),
        (Some("Zinc is a metal."), &["Roe, A".to_owned(), "Doe, B".to_owned()][..])
    );
}

#[test]
fn index_of_proquest_repeats_nothing() {
    let text = "Document 1 of 1\n\nZinc\n\nAuthor: Roe, Ann; Doe, Bob\n\nPublication info: Tests; London Vol. 12, Iss. 3,  \
        (2020). DOI:10.5555/a\n\nTitle: Zinc\n\nAuthor: Roe, Ann; Doe, Bob\n\nPublication title: Tests; London\n";
    let found = &references(text)[0];
    assert_eq!(found.authors, ["Roe, Ann", "Doe, Bob"]);
    assert_eq!((found.journal.as_deref(), found.doi.as_deref()), (Some("Tests"), Some("10.5555/a")));
}

#[test]
fn citations_in_tables_are_read() {
    let pubmed = "PMID,Title,Authors,Citation,Journal/Book,Publication Year\n\
        30000001,Tests.,\"Roe A, Doe B.\",\"J Tests. 2021 May 15;1(2):100-109. doi: 10.5555/a.\",J Tests,2021\n";
    let found = &references(pubmed)[0];
    assert_eq!((found.journal.as_deref(), found.date.as_deref()), (Some("J Tests"), Some("2021-05-15")));
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("1"), Some("2")));
    assert_eq!(found.pages.as_deref(), Some("100-109"));

    let ovid = "UI,Title,Authors,Source,DB\n30000001,Tests,Roe J. Doe A.,\"J Tests. 1(2):100-9, 2020 May 15.\",Ovid MEDLINE(R)\n";
    let found = &references(ovid)[0];
    assert_eq!((found.pmid.as_deref(), found.date.as_deref()), (Some("30000001"), Some("2020-05-15")));
    assert_eq!((found.journal.as_deref(), found.pages.as_deref()), (Some("J Tests"), Some("100-9")));
    assert_eq!(found.authors, ["Roe, J.", "Doe, A."]);
}

#[test]
fn trials_in_tables_are_read() {
    let ctis = "Trial number,Title of the trial,Medical conditions,Start date\n2022-500123-12-00,A trial,Pain,2022-05-15\n";
    let found = &references(ctis)[0];
    assert_eq!(
        (found.trial_ids.as_slice(), found.year),
        (["CTIS2022-500123-12".to_owned()].as_slice(), Some(2022))
    );
    let registry =
        "NCT Number,Study Title,Conditions,First Posted\nNCT00000001,A trial,Pain|Age,2020-05-15\n";
    let found = &references(registry)[0];
    assert_eq!((found.keywords.len(), found.date.as_deref()), (2, Some("2020-05-15")));
}

#[test]
fn issue_date_is_preferred_to_early_access() {
    let text = "FN Clarivate Analytics Web of Science\nVR 1.0\nPT J\nAU Roe, A\nTI Tests\nPD MAY 15\nPY 2021\nEA APR 2021\nER\n\nEF\n";
    assert_eq!(references(text)[0].date.as_deref(), Some("2021-05-15"));
    let json = r#"{"resultList":{"result":[{"pmid":"42","title":"Tests","authorString":"Roe A, Doe B, Test Study Group.",
        "pubYear":"2020","firstPublicationDate":"2019-12-01"}]}}"#;
    let found = &references(json)[0];
    assert_eq!((found.year, found.authors.len()), (Some(2020), 3));
}

#[test]
fn crossref_abstracts_and_subtitles_are_plain() {
    let json = r#"{"status":"ok","message":{"items":[{"DOI":"10.5555/b","title":["Tests"],"subtitle":["a trial"],
        "abstract":"<jats:title>Aim</jats:title><jats:p>We <jats:italic>test</jats:italic>.</jats:p>","type":"journal-article"}]}}"#;
    let found = &references(json)[0];
    assert_eq!(
        (found.title.as_str(), found.r#abstract.as_deref()),
        ("Tests: a trial", Some("Aim\nWe test."))
    );
    let headed = json.replace("<jats:title>Aim", "<jats:title>Abstract");
    assert_eq!(references(&headed)[0].r#abstract.as_deref(), Some("We test."));
}

#[test]
fn subjects_and_parts_of_mods_are_distinguished() {
    let text = r#"<modsCollection xmlns="http://www.loc.gov/mods/v3"><mods>
        <subject><name type="personal"><namePart>Poe, Eve</namePart></name></subject>
        <subject><titleInfo><title>Another work</title></titleInfo></subject>
        <titleInfo><title>Works</title><partNumber>Vol. 2</partNumber><partName>Tests</partName></titleInfo>
        <name type="personal"><displayForm>Roe, Ann</displayForm><role><roleTerm>Verfasser</roleTerm></role></name>
        <name type="corporate"><namePart>Test State</namePart><namePart>Test Office</namePart></name>
        </mods></modsCollection>"#;
    let found = references(text).remove(0);
    assert_eq!(found.title, "Works. Vol. 2, Tests");
    assert_eq!(found.authors, ["Roe, Ann", "Test State. Test Office"]);
    assert_eq!(found.extra["subject"], ["Poe, Eve", "Another work"]);
}

#[test]
fn headings_of_abstracts_are_lines() {
    let text = "<h4>Aim</h4>We test x <b and c.<h4>Methods</h4>We did.";
    let json = format!(
        r#"{{"resultList":{{"result":[{{"pmid":"42","title":"Tests","authorString":"Roe A.","abstractText":"{text}"}}]}}}}"#
    );
    let ris = format!("TY  - JOUR\nTI  - Tests\nAB  - {text}\nER  - \n");
    for file in [json, ris, format!("Title,Abstract\nTests,{text}\n")] {
        let expected = "Aim\nWe test x <b and c.\nMethods\nWe did.";
        assert_eq!(references(&file)[0].r#abstract.as_deref(), Some(expected), "{file}");
    }
}

#[test]
fn latest_version_of_a_pmid_counts() {
    let text = "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version=\"1\">1</PMID><PMID Version=\"2\">30000001</PMID>\
        <Article><ArticleTitle>Tests</ArticleTitle></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>";
    assert_eq!(references(text)[0].pmid.as_deref(), Some("30000001"));
}

#[test]
fn cochrane_numbers_and_trials_are_not_lost() {
    let text = "TY  - JOUR\nTI  - Tests\nA1  - NCT01234567,\nC3  - PUBMED 30000001,EMBASE 620000001\nID  - CN-01234567\nER  - \n";
    let found = &references(text)[0];
    assert_eq!((found.pmid.as_deref(), found.embase_id.as_deref()), (Some("30000001"), Some("620000001")));
    assert!(found.authors.is_empty(), "{:?}", found.authors);
}

#[test]
fn json_with_other_names_is_read() {
    let same = |json: &str, pmid: Option<&str>| {
        let found = &references(json)[0];
        assert_eq!((found.title.as_str(), found.year), ("Tests", Some(2020)), "{json}");
        assert_eq!(
            (found.journal.as_deref(), found.volume.as_deref()),
            (Some("J Tests"), Some("1")),
            "{json}"
        );
        assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/a"), pmid), "{json}");
        found.authors.clone()
    };
    let lens = r#"{"data":[{"lens_id":"1","title":"Tests","year_published":2020,"authors":[{"first_name":"Ann","last_name":"Roe"}],
        "source":{"title":"J Tests"},"volume":"1","external_ids":[{"type":"doi","value":"10.5555/a"},{"type":"pmid","value":"30000001"}]}]}"#;
    assert_eq!(same(lens, Some("30000001")), ["Roe, Ann"]);
    let dimensions = r#"{"publications":[{"id":"pub.1","title":"Tests","year":2020,"doi":"10.5555/a","pmid":"30000001",
        "authors":[{"first_name":"Ann","last_name":"Roe"}],"journal":{"title":"J Tests"},"volume":"1"}]}"#;
    assert_eq!(same(dimensions, Some("30000001")), ["Roe, Ann"]);
    let core = r#"{"results":[{"title":"Tests","authors":[{"name":"Roe, Ann"}],"yearPublished":2020,"doi":"10.5555/a",
        "journals":[{"title":"J Tests"}],"volume":"1"}]}"#;
    assert_eq!(same(core, None), ["Roe, Ann"]);
    let doaj = r#"{"results":[{"id":"x","bibjson":{"title":"Tests","year":"2020","author":[{"name":"Ann Roe"}],
        "journal":{"title":"J Tests","volume":"1"},"identifier":[{"type":"doi","id":"10.5555/a"}]}}]}"#;
    assert_eq!(same(doaj, None), ["Ann Roe"]);
    let ieee = r#"{"articles":[{"doi":"10.5555/a","title":"Tests","publication_title":"J Tests","publication_year":2020,
        "volume":"1","authors":{"authors":[{"full_name":"Ann Roe"}]}}]}"#;
    assert_eq!(same(ieee, None), ["Ann Roe"]);
    let scopus = r#"{"search-results":{"entry":[{"dc:title":"Tests","dc:creator":"Roe A.","prism:coverDate":"2020-05-15",
        "prism:publicationName":"J Tests","prism:volume":"1","prism:doi":"10.5555/a","pubmed-id":"30000001"}]}}"#;
    assert_eq!(same(scopus, Some("30000001")), ["Roe, A."]);
    let zenodo = r#"{"hits":{"hits":[{"id":1,"title":"Tests","metadata":{"title":"Tests","doi":"10.5555/a","creators":[{"name":"Roe, Ann"}],
        "publication_date":"2020-03-15","journal":{"title":"J Tests","volume":"1"}}}],"total":1}}"#;
    assert_eq!(same(zenodo, None), ["Roe, Ann"]);
    let dblp = r#"{"result":{"hits":{"@total":"2","hit":[{"@score":"5","info":{"authors":{"author":[{"@pid":"1","text":"Ann Roe 0001"}]},
        "title":"Tests","venue":"J Tests","volume":"1","year":"2020","doi":"10.5555/a"}},{"info":{"title":"Other tests"}}]}}}"#;
    assert_eq!((same(dblp, None), references(dblp).len()), (vec!["Ann Roe".to_owned()], 2));
    let data_cite = r#"{"data":[{"id":"10.5555/a","attributes":{"doi":"10.5555/a","titles":[{"title":"Tests"}],
        "creators":[{"name":"Roe, Ann"}],"publicationYear":2020,"container":{"title":"J Tests","volume":"1"}}}]}"#;
    assert_eq!(same(data_cite, None), ["Roe, Ann"]);
    let mendeley = r#"[{"title":"Tests","authors":[{"first_name":"Ann","last_name":"Roe"}],"year":2020,"source":"J Tests","volume":"1",
        "identifiers":{"doi":"10.5555/a","pmid":"30000001"}}]"#;
    assert_eq!(same(mendeley, Some("30000001")), ["Roe, Ann"]);
    let eric = r#"{"response":{"docs":[{"id":"EJ1240001","title":"Tests","author":["Roe, Ann"],"publicationdateyear":2020,"source":"J Tests"}]}}"#;
    let found = references(eric).remove(0);
    assert_eq!((found.year, found.journal.as_deref()), (Some(2020), Some("J Tests")));
    assert_eq!((found.authors, found.accession.as_deref()), (vec!["Roe, Ann".to_owned()], Some("EJ1240001")));
    let preprints = r#"{"collection":[{"doi":"10.5555/a","title":"Tests","authors":"Roe, A.; Doe, B.","date":"2020-01-02"}]}"#;
    assert_eq!(references(preprints)[0].authors, ["Roe, A.", "Doe, B."]);
}

#[test]
fn invalid_pubmed_values_are_ignored() {
    let text = "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>30000001</PMID><Article><Journal><JournalIssue>\
        <PubDate><Year>2020</Year><Season>Spring</Season></PubDate></JournalIssue></Journal><ArticleTitle>Tests</ArticleTitle>\
        <ELocationID EIdType=\"doi\" ValidYN=\"N\">10.5555/b</ELocationID><ELocationID EIdType=\"doi\" ValidYN=\"Y\">10.5555/a</ELocationID>\
        <AuthorList><Author ValidYN=\"Y\"><LastName>Roe</LastName></Author><Author ValidYN=\"N\"><LastName>Row</LastName></Author>\
        </AuthorList></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>";
    let found = &references(text)[0];
    assert_eq!((found.doi.as_deref(), found.year), (Some("10.5555/a"), Some(2020)));
    assert_eq!(found.authors, ["Roe"]);
}

#[test]
fn jats_groups_dates_and_subtitles_are_read() {
    let text = "<article><front><article-meta><title-group><article-title>Tests</article-title><subtitle>a trial</subtitle></title-group>\
        <contrib-group><contrib contrib-type=\"author\"><collab>Test Group<contrib-group><contrib><name><surname>Member</surname></name>\
        </contrib></contrib-group></collab></contrib></contrib-group><pub-date pub-type=\"epub\"><month>12</month><year>2019</year></pub-date>\
        <pub-date pub-type=\"ppub\"><month>5</month><year>2020</year></pub-date></article-meta></front></article>";
    let found = &references(text)[0];
    assert_eq!((found.title.as_str(), found.date.as_deref()), ("Tests: a trial", Some("2020-05")));
    assert_eq!(found.authors, ["Test Group"]);
}

#[test]
fn jats_names_in_other_elements_are_read() {
    let authors = |names: &str| {
        let text = format!(
            "<article><front><article-meta><title-group><article-title>Tests</article-title></title-group><contrib-group>\
            <contrib contrib-type=\"author\">{names}</contrib><contrib contrib-type=\"author\"><name><surname>Poe</surname>\
            <given-names>Kay</given-names></name></contrib></contrib-group><product><name><surname>Farm</surname></name>\
            <string-name>Ed Hill</string-name></product></article-meta></front></article>"
        );
        references(&text).remove(0).authors
    };
    let name =
        |family: &str| format!("<name><surname>{family}</surname><given-names>Ann</given-names></name>");
    for (names, first) in [
        (
            "<string-name><given-names>Ann</given-names> <surname>Roe</surname></string-name>".to_owned(),
            "Roe, Ann",
        ),
        ("<string-name>Ann Roe</string-name>".to_owned(), "Ann Roe"),
        ("<string-name>Roe, Ann</string-name>".to_owned(), "Roe, Ann"),
        (format!("<name-alternatives>{}{}</name-alternatives>", name("Roe"), name("张")), "Roe, Ann"),
        (
            format!(
                "<name-alternatives><string-name>Ann Roe</string-name>{}</name-alternatives>",
                name("张")
            ),
            "Ann Roe",
        ),
    ] {
        assert_eq!(authors(&names), [first, "Poe, Kay"], "{names}");
    }
    assert_eq!(authors(""), ["Poe, Kay"]);
}

#[test]
fn identifiers_of_bibtex_exports_are_read() {
    for entry in [
        "@article{a, title={Tests}, pubmed_id={30000001}}",
        "@article{a, title={Tests}, eprint={30000001}, eprinttype={pubmed}}",
    ] {
        assert_eq!(references(entry)[0].pmid.as_deref(), Some("30000001"), "{entry}");
    }
    let embase = &references("@article{L2007654340, title={Tests}, author={Roe J. and Doe A.}}")[0];
    assert_eq!(embase.embase_id.as_deref(), Some("L2007654340"));
    assert_eq!(embase.authors, ["Roe, J.", "Doe, A."]);
}

#[test]
fn tagged_exports_of_ovid_are_read() {
    let text = "<3001. >\nVN  - Ovid Technologies\nDB  - Embase\nUI  - 621381829\nTI  - Tests\n\
        SO  - Journal of Tests. 12(3) (pp 100-109), 2018. Date of Publication: 01 Mar 2018.\nAU  - Roe A.\n\n\
        <3002. >\nVN  - Ovid Technologies\nDB  - BIOSIS Previews\nAN  - PREV200400473722\n\
        AU  - Doe, C. M. [Author, Reprint Author; E-mail: doe@test.org]\nTI  - Trials\n";
    for text in [text.to_owned(), text.replace("<3001. >\n", "").replace("<3002. >\n", "")] {
        let found = references(&text);
        let first = &found[0];
        assert_eq!(
            (first.journal.as_deref(), first.volume.as_deref()),
            (Some("Journal of Tests"), Some("12"))
        );
        assert_eq!((first.issue.as_deref(), first.pages.as_deref()), (Some("3"), Some("100-109")));
        assert_eq!((first.year, first.embase_id.as_deref()), (Some(2018), Some("621381829")));
        assert_eq!(
            (found[1].title.as_str(), found[1].accession.as_deref()),
            ("Trials", Some("PREV200400473722"))
        );
        assert_eq!(found[1].authors, ["Doe, C. M."]);
        assert_eq!(found.len(), 2);
    }
}

#[test]
fn labels_before_identifiers_of_cochrane_are_removed() {
    let text = "CENTRAL ID,Title,PubMed ID,Embase ID\nCN-00778158,Tests,PUBMED 21314913,EMBASE 643589775\n";
    let found = &references(text)[0];
    assert_eq!((found.pmid.as_deref(), found.embase_id.as_deref()), (Some("21314913"), Some("643589775")));
    assert_eq!(found.accession.as_deref(), Some("CN-00778158"));
}

#[test]
fn numbers_of_databases_on_ovid_are_read() {
    let record = |database: &str, id: &str| {
        let text =
            format!("TY  - JOUR\nDB  - {database}\nID  - {id}\nT1  - Tests\nA1  - Hern, Matt, Ed\nER  - \n");
        let found = references(&text).remove(0);
        assert_eq!(found.authors, ["Hern, Matt"]);
        found.accession
    };
    assert_eq!(record("ERIC <1992 to June 2024>", "EJ1251011").as_deref(), Some("EJ1251011"));
    assert_eq!(record("CAB Abstracts <1973 to 2024>", "20203400001").as_deref(), Some("20203400001"));
    assert_eq!(record("EndNote", "20203400001"), None);
    for (name, kept) in [("Harris, Jr., Ed", "Harris, Jr., Ed"), ("Roe, Ann, Eds.", "Roe, Ann")] {
        let found = references(&format!("TY  - JOUR\nTI  - Tests\nAU  - {name}\nER  - \n"));
        assert_eq!(found[0].authors, [kept]);
    }
    let text = "TY  - JOUR\nTI  - Tests\nID  - ED12345\nAN  - EJ999999\nER  - \n";
    assert_eq!(references(text)[0].accession.as_deref(), Some("EJ999999"));
}

#[test]
fn first_of_several_links_is_kept() {
    for rest in ["\nhttps://b.org/2", "; https://b.org/2", " U2  - L2029880245"] {
        let found =
            references(&format!("TY  - JOUR\nTI  - Tests\nUR  - http://a.org/1{rest}\nER  - \n")).remove(0);
        assert_eq!(found.url.as_deref(), Some("http://a.org/1"), "{rest}");
        assert!(found.extra.get("UR").is_some_and(|others| others.len() == 1), "{rest}");
    }
    let proxy = "https://proxy.org/login?url= https://b.org/2";
    let found = references(&format!("TY  - JOUR\nTI  - Tests\nUR  - {proxy}\nER  - \n")).remove(0);
    assert_eq!(found.url.as_deref(), Some(proxy));
}

#[test]
fn article_numbers_and_last_pages_are_read() {
    let embase = "Title,Source,Source title,Volume,First Page\nTests,\
        Nature Communications (2024) 15:1 Article Number: 4063. Date of Publication: 1 Dec 2024,Nature Communications,15,\n";
    assert_eq!(references(embase)[0].pages.as_deref(), Some("4063"));
    let refworks =
        "Title Primary\tStart Page\tOther Pages\nTests\t69\t79\nTrials\t\tS105\nOthers\t69\t69-79\n";
    let pages: Vec<_> = references(refworks).into_iter().filter_map(|found| found.pages).collect();
    assert_eq!(pages, ["69-79", "S105", "69-79"]);
}

#[test]
fn tagged_export_of_ovid_follows_other_records() {
    let text = "TY  - JOUR\nTI  - First\nER  - \n\nVN  - Ovid Technologies\nPM  - 30000001 [https://www.ncbi.nlm.nih.gov]\nTI  - Second\n";
    let found = references(text);
    assert_eq!(found.iter().map(|found| &*found.title).collect::<Vec<_>>(), ["First", "Second"]);
    assert_eq!(found[1].pmid.as_deref(), Some("30000001"));
}

#[test]
fn journals_of_ovid_are_read() {
    let text = "<1. >\nVN  - Ovid Technologies\nDB  - Journals@Ovid\nAU  - Roe, Ann MD, PhD *\nAU  - Doe, Bob MD\nTI  - Tests.\n\
        SO  - Journal of Tests May/June 2020;12(3):123-129\nKW  - one;  two\nDT  - Original Articles.\nIS  - 0000-0019\n\
        DI  - 10.5555/a\nXL  - http://ovid.example/a\n\n\
        <2. >\nVN  - Ovid Technologies\nDB  - Political Abstracts\nAU  - Poe, Kay\nTI  - More\n\
        SO  - Journal of Tests 12, Winter 2020: 7-14.\nDE  - Law , Courts\n";
    let found = references(text);
    let [first, second] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (first.authors.as_slice(), first.doi.as_deref()),
        (["Roe, Ann", "Doe, Bob"].map(String::from).as_slice(), Some("10.5555/a"))
    );
    assert_eq!(
        (first.journal.as_deref(), first.date.as_deref()),
        (Some("Journal of Tests"), Some("2020-05"))
    );
    assert_eq!((first.volume.as_deref(), first.issue.as_deref()), (Some("12"), Some("3")));
    assert_eq!(
        (first.pages.as_deref(), first.url.as_deref()),
        (Some("123-129"), Some("http://ovid.example/a"))
    );
    assert_eq!(
        (first.r#type.as_deref(), first.keywords.as_slice()),
        (Some("Original Articles."), ["one", "two"].map(String::from).as_slice())
    );
    assert_eq!(
        (second.journal.as_deref(), second.year, second.pages.as_deref()),
        (Some("Journal of Tests"), Some(2020), Some("7-14"))
    );
    assert_eq!(second.keywords, ["Law", "Courts"]);
    let pubmed = &references("PMID- 1\nTI  - Tests\nFAU - Roe, Ann MD\n")[0];
    assert_eq!(pubmed.authors, ["Roe, Ann MD"]);
}

#[test]
fn ovid_work_ahead_of_print_is_read() {
    let text = "<1>\nAuthor\n  Roe, Ann 1;  Doe, Bob MD, PhD *\nTitle\n  Tests\nSource\n  Journal of Tests. \nStatus\n  \
        Publish Ahead of Print, POST ACCEPTANCE, 30 November 2020\nAuthor Keywords\n  one;  two\nDocument Type\n  Review.\n\
        DOI Number\n  10.5555/a\n";
    let found = &references(text)[0];
    assert_eq!(
        (found.authors.as_slice(), found.doi.as_deref()),
        (["Roe, Ann", "Doe, Bob"].map(String::from).as_slice(), Some("10.5555/a"))
    );
    assert_eq!(
        (found.journal.as_deref(), found.date.as_deref()),
        (Some("Journal of Tests"), Some("2020-11-30"))
    );
    assert_eq!((found.keywords.len(), found.r#type.as_deref()), (2, Some("Review.")));
}

#[test]
fn roles_and_lives_in_brackets_are_no_names() {
    let text = "VN  - Ovid Technologies\nDB  - BIOSIS Previews\nTI  - Tests\nAU  - Roe, Ann B. [Inventor, Reprint Author]\n";
    assert_eq!(references(text)[0].authors, ["Roe, Ann B."]);
    let text = "<mods><titleInfo><title>Tests</title></titleInfo><name type=\"personal\"><namePart>Roe, Ann [1848-1914]</namePart></name></mods>";
    assert_eq!(references(text)[0].authors, ["Roe, Ann"]);
}

#[test]
fn second_link_behind_first_is_separate() {
    let links = |value: &str| {
        let found = references(&format!("TY  - JOUR\nTI  - a\nUR  - {value}\nER  - \n"));
        (
            found[0].url.clone().unwrap_or_default(),
            found[0].extra.get("UR").cloned().unwrap_or_default().concat(),
        )
    };
    let (first, second) = ("https://a.example/1", "https://b.example/2");
    for separator in ["", ";", " and ", "; "] {
        assert_eq!(links(&[first, separator, second].concat()), (first.to_owned(), second.to_owned()));
    }
    for link in [
        "https://web.example/web/2020/https://a.example/b",
        "https://proxy.example/login?url=https://a.example/b",
        "https://doi.orghttps://doi.org/10.5555/a",
        "https://a.example/httpstatus",
    ] {
        assert_eq!(links(link), (link.to_owned(), String::new()));
    }
}

#[test]
fn wos_tags_name_columns_of_any_table() {
    let rows = "PT,AN,TI,AU,SO,VL,PS,BP,PD,PY,TN,UT\nJ,Z1,Tests,\"Roe, Ann; Doe, Bo\",J Tests,1,104-116,,2018/03/01,2018,Birds,ZOOREC:Z1\n\
        J,Z2,More,\"Roe, Ann\",J Tests,1,Article No.: 16,16,,2018,,ZOOREC:Z2\nJ,Z3,Most,\"Roe, Ann\",J Tests,1,Article No.: e7,,,2018,,ZOOREC:Z3\n";
    let tabs = rows
        .replace("\"Roe, Ann; Doe, Bo\"", "Roe# Ann; Doe# Bo")
        .replace("\"Roe, Ann\"", "Roe# Ann")
        .replace(',', "\t")
        .replace('#', ",");
    for text in [rows.to_owned(), tabs] {
        let found = references(&text);
        assert_eq!(
            (found[0].authors.len(), found[0].keywords.as_slice()),
            (2, ["Birds".to_owned()].as_slice())
        );
        assert_eq!(
            (found[0].pages.as_deref(), found[0].date.as_deref()),
            (Some("104-116"), Some("2018-03-01"))
        );
        assert_eq!((found[1].pages.as_deref(), found[2].pages.as_deref()), (Some("16"), Some("e7")));
    }
}

#[test]
fn sinomed_texts_without_brackets_are_read() {
    for colon in ["：", ":", ": ", " ： "] {
        let text = "流水号=2020123456\n标题=支持的研究\n作者=王伟①;李明\n出处=示例医学 2020;5(1):1-5\n摘要=背景: 未知\n方法：试验\n\n\
            流水号=2\n标题=第二\n年代=2019\n\n3、\n标题=第三\n作者=王伟\n"
            .replace('=', colon);
        for bytes in [text.as_bytes().to_vec(), encoding_rs::GB18030.encode(&text).0.into_owned()] {
            let (outcomes, report) = read(&bytes).unwrap();
            assert_eq!((report.records, report.quarantined, report.skipped), (3, 0, None), "{text}");
            let found: Vec<_> = outcomes.into_iter().map(crate::reference).collect();
            assert_eq!(found[0].authors, ["王伟", "李明"]);
            assert_eq!(
                (found[0].journal.as_deref(), found[0].pages.as_deref()),
                (Some("示例医学"), Some("1-5"))
            );
            assert_eq!(found[0].r#abstract.as_deref(), Some("背景: 未知 方法：试验"));
            assert_eq!((found[1].title.as_str(), found[1].year), ("第二", Some(2019)));
            assert_eq!((found[2].title.as_str(), found[2].authors.len()), ("第三", 1));
        }
    }
}

#[test]
fn words_of_abstract_begin_no_sinomed_record() {
    let text = "【流水号】：1\n【标题】：第一\n【摘要】：目的\n标题：不是\n作者：不是\n\n【流水号】：2\n【标题】：第二\n";
    let found = references(text);
    assert_eq!((found.len(), found[0].title.as_str(), found[0].authors.len()), (2, "第一", 0));
    let numbered = "1、\n【标题】：第一\n【作者】：王伟;李明\n\n2．\n【标题】：第二\n";
    let found = references(numbered);
    assert_eq!((found.len(), &found[0].authors[1][..]), (2, "李明"));
}
